// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"net/http"
	"net/netip"
)

// sourceOf returns the flow of r before authentication: its IPv4 address, or its IPv6 network of 64 bits, since
// one host may have such a network for itself.
func sourceOf(r *http.Request) flow {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return flow{caller: r.RemoteAddr}
	}
	address := at.Addr().Unmap().WithZone("")
	if address.Is6() {
		network, _ := address.Prefix(64) // no error: an IPv6 address has a prefix of 64 bits
		address = network.Addr()
	}
	return flow{caller: address.String()}
}
