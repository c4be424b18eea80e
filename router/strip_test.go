// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStripIdentity(t *testing.T) {
	for _, name := range []string{
		"Authorization", "authorization", "Cookie", "Impersonate-User", "impersonate-group", "IMPERSONATE-UID", "Impersonate-Extra-Scopes", "Impersonate-Of-The-Future",
		"X-Remote-User", "x-remote-group", "X-Remote-Extra-A", "Connection", "Proxy-Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Proxy-Authorization",
	} {
		h := http.Header{name: {"mallory"}, "Accept": {"application/json"}}
		StripIdentity(h)
		require.Equal(t, http.Header{"Accept": {"application/json"}}, h, name)
	}
	for given, want := range map[string][]string{
		"base64url.bearer.authorization.k8s.io.bWFsbG9yeQ":                          nil,
		"Base64URL.bearer.authorization.k8s.io.bWFsbG9yeQ, v5.channel.k8s.io":       {"v5.channel.k8s.io"},
		"v5.channel.k8s.io,base64url.bearer.authorization.k8s.io.bWFsbG9yeQ":        {"v5.channel.k8s.io"},
		"v5.channel.k8s.io, v4.channel.k8s.io":                                      {"v5.channel.k8s.io, v4.channel.k8s.io"},
		"a, base64url.bearer.authorization.k8s.io.bWFsbG9yeQ, v4.base64.channel.io": {"a, v4.base64.channel.io"},
	} {
		h := http.Header{"Sec-Websocket-Protocol": {given}}
		StripIdentity(h)
		require.Equal(t, want, h["Sec-Websocket-Protocol"], given)
	}
}
