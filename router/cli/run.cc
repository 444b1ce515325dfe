// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <cstdio>
#include <string>

#include "router/cli/commands.h"

namespace sightline::cli {
namespace {

constexpr char kHelp[] =
    R"(Sightline routes OpenAI requests, also with images, to the LLM engine that has already
cached their KV blocks.

  sightline serve     the router: OpenAI API on one port, health and metrics on another
  sightline agent     forwards the KV events of engines to several routers, over NATS
  sightline drain     drains an agent's engines, for a preStop hook
  sightline simulate  simulated vLLM engines with real wire formats, for trying the router
  sightline top       a live view of routers and their workers, from their admin ports

  sightline <command> --help   its flags, with meaning, default, range and environment variable
  sightline --version

A first try, with a model directory (config.json, tokenizer.json, chat template):

  sightline simulate --engines 2 --model-path DIR --served-model-name m &
  sightline serve --model-path DIR --served-model-name m \
    --worker 'url=http://127.0.0.1:8101' --worker 'url=http://127.0.0.1:8102'
  curl -i http://127.0.0.1:8000/v1/chat/completions -H 'content-type: application/json' \
    -d '{"model":"m","messages":[{"role":"user","content":"Hello"}]}'
)";

}  // namespace

int run(const Invocation& invocation) {
  const auto& arguments = invocation.arguments;
  const std::string command = arguments.empty() ? "--help" : arguments.front();
  if (command == "--version") {
    std::printf("sightline %s\n", SL_VERSION);
    return 0;
  }
  if (command == "--help" || command == "-h" || command == "help") {
    std::fputs(kHelp, stdout);
    return 0;
  }
  const Invocation rest{{arguments.begin() + 1, arguments.end()}, invocation.environment};
  if (command == "serve") return serve_command(rest);
  if (command == "agent") return agent_command(rest);
  if (command == "drain") return drain_command(rest);
  if (command == "simulate") return simulate_command(rest);
  if (command == "top") return top_command(rest);
  std::fprintf(stderr,
               "sightline: unknown command '%s'. Use serve, agent, drain, simulate, top, --help, "
               "--version\n",
               command.c_str());
  return 2;
}

}  // namespace sightline::cli
