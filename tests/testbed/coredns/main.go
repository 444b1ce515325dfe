// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors

// CoreDNS with the few plugins that a test bed's cluster DNS needs.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
)

// The order is that of CoreDNS's own plugin.cfg: a plugin asks those after it.
func main() {
	dnsserver.Directives = []string{"ready", "errors", "kubernetes"}
	coremain.Run()
}
