# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Cluster DNS: CoreDNS beside the real node, for Services and pods."""

from . import bed as beds
from .api import call
from .services import Service

DOMAIN = "cluster.local"
READY = "127.0.0.1:8181"
COREFILE = """\
.:53 {{
  errors
  ready {ready}
  kubernetes {domain} in-addr.arpa ip6.arpa {{
    kubeconfig {kubeconfig} {context}
    pods insecure
    ttl 1
  }}
}}
"""


def service(bed, programs):
    """Returns the service of CoreDNS, which listens on all addresses of the bed's network."""
    corefile = bed.directory / "Corefile"
    beds.write_whole(corefile, COREFILE.format(
        ready=READY, domain=DOMAIN, kubeconfig=bed.pki / "coredns.kubeconfig",
        context=f"testbed-{bed.name}"))
    return Service("coredns", [programs["coredns"], "-conf", corefile],
                   lambda: call(f"http://{READY}/ready")[0] == 200)
