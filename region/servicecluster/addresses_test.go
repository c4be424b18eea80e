// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package servicecluster

import (
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAddressesRefuseSpecialAddresses(t *testing.T) {
	t.Parallel()
	for _, refused := range []string{
		"127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::7f00:1", "2002:7f00:1::",
		"169.254.169.254", "169.254.1.1", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1", "fe80::1", "fe80::1%eth0",
		"fe80::a9fe:a9fe", "100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254",
		"0.0.0.0", "0.1.2.3", "::", "::ffff:0.0.0.0", "224.0.0.1", "255.255.255.255", "ff02::1", "ff01::1",
	} {
		err := Addresses{}.Check(netip.MustParseAddr(refused))
		require.ErrorIs(t, err, ErrAddress, refused)
		require.NotContains(t, err.Error(), refused, "messages must not tell what a name resolves to")
	}
	for _, allowed := range []string{"10.0.0.1", "192.168.3.4", "172.16.0.1", "100.64.0.1", "8.8.8.8", "2001:db8::1", "fd12:3456::1", "64:ff9b::808:808", "2002:808:808::1"} {
		require.NoError(t, Addresses{}.Check(netip.MustParseAddr(allowed)), allowed)
	}
}

func TestAddressesOfAnInstallation(t *testing.T) {
	t.Parallel()
	p := Addresses{
		Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("10.1.2.3/32")},
		Deny:  []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("127.0.0.53/32"), netip.MustParsePrefix("fd12::/16")},
	}
	for address, allowed := range map[string]bool{
		"127.0.0.1": true, "127.0.0.53": false, "169.254.169.254": false, "::1": false,
		"10.1.2.3": false, "64:ff9b::a01:203": false, "::ffff:10.9.9.9": false, "11.0.0.1": true, "fd12::1": false, "fd13::1": true,
	} {
		err := p.Check(netip.MustParseAddr(address))
		require.Equal(t, allowed, err == nil, "%s: %v", address, err)
	}
}

// TestTheAddressIsCheckedAtTheConnection uses a name: only the resolved address tells that it is the loopback.
func TestTheAddressIsCheckedAtTheConnection(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = listener.Close() }()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	_, err = Addresses{}.dial(t.Context(), "tcp", net.JoinHostPort("localhost", port))
	require.ErrorIs(t, err, ErrAddress)
	conn, err := Addresses{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}}.
		dial(t.Context(), "tcp", net.JoinHostPort("localhost", port))
	require.NoError(t, err)
	require.NoError(t, conn.Close())
}
