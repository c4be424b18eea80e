// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"net/http"
	"net/netip"
)

// sourceOf is where r comes from, before anything else is known of it: an IPv4 address, or the IPv6 network of 64 bits
// that one host has for itself.
func sourceOf(r *http.Request) flow {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return flow{caller: r.RemoteAddr}
	}
	address := at.Addr().Unmap().WithZone("")
	if address.Is6() {
		network, _ := address.Prefix(64) // of an IPv6 address there is one
		address = network.Addr()
	}
	return flow{caller: address.String()}
}
