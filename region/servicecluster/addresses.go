// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package servicecluster

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"syscall"
)

// ErrAddress means that a server has an address that [Addresses] refuse. Correct the kubeconfig's server, or add its
// network to Addresses.Allow or remove it from Addresses.Deny.
var ErrAddress = errors.New("the server's address is not allowed")

// addressError is why an address is refused.
type addressError struct{ why string }

func (e *addressError) Error() string { return ErrAddress.Error() + ": " + e.why }

func (e *addressError) Unwrap() error { return ErrAddress }

// Addresses decide to which addresses the probe of a kubeconfig may connect. The zero value refuses loopback,
// link-local, multicast, broadcast and unspecified addresses and the metadata services of clouds, also where an IPv6
// address contains such an IPv4 address, and allows all others.
type Addresses struct {
	// Allow are addresses that are allowed although the zero value refuses them.
	Allow []netip.Prefix
	// Deny are addresses that are refused, whatever Allow has: the networks of the installation itself, for example.
	Deny []netip.Prefix
}

// metadata are the addresses of metadata services that are not link-local.
var metadata = []netip.Addr{
	netip.MustParseAddr("100.100.100.200"), // Alibaba Cloud
	netip.MustParseAddr("168.63.129.16"),   // Azure
	netip.MustParseAddr("192.0.0.192"),     // Oracle Cloud
	netip.MustParseAddr("fd00:ec2::254"),   // AWS
	netip.MustParseAddr("fd20:ce::254"),    // Google Cloud
}

// Check returns nil if a connection to a is allowed, and otherwise an error that wraps ErrAddress and does not contain a.
func (p Addresses) Check(a netip.Addr) error {
	for _, a := range forms(a) {
		in := func(prefixes []netip.Prefix) bool {
			return slices.ContainsFunc(prefixes, func(prefix netip.Prefix) bool { return prefix.Contains(a) })
		}
		if in(p.Deny) {
			return &addressError{"this installation refuses its network"}
		}
		if kind := special(a); kind != "" && !in(p.Allow) {
			return &addressError{"it is " + kind}
		}
	}
	return nil
}

// special returns what kind of address a is, if it is refused unless it is allowed explicitly.
func special(a netip.Addr) string {
	switch {
	case a.IsLoopback():
		return "a loopback address"
	case slices.Contains(metadata, a):
		return "that of a metadata service"
	case a.IsLinkLocalUnicast():
		return "a link-local address"
	case a.IsMulticast(), a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return "a multicast or broadcast address"
	case a.IsUnspecified(), a.Is4() && a.As4()[0] == 0:
		return "an unspecified address"
	}
	return ""
}

// forms returns a without its zone, and the IPv4 address that a contains, if any.
func forms(a netip.Addr) []netip.Addr {
	a = a.Unmap().WithZone("")
	if a.Is4() {
		return []netip.Addr{a}
	}
	b := a.As16()
	at := -1
	switch {
	case netip.MustParsePrefix("64:ff9b::/96").Contains(a), netip.MustParsePrefix("64:ff9b:1::/48").Contains(a), // NAT64
		netip.MustParsePrefix("::/96").Contains(a) && !a.IsLoopback() && !a.IsUnspecified():
		at = 12
	case netip.MustParsePrefix("2002::/16").Contains(a): // 6to4
		at = 2
	}
	if at < 0 {
		return []netip.Addr{a}
	}
	return []netip.Addr{a, netip.AddrFrom4([4]byte(b[at : at+4]))}
}

// dial connects to an address that p allows. It checks each address that the name resolves to just before it connects,
// so a name cannot resolve to another address after the check.
func (p Addresses) dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Control: func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return &addressError{"it is not an IP address"}
		}
		return p.Check(at.Addr())
	}}
	return dialer.DialContext(ctx, network, address)
}
