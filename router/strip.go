// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"net/http"
	"slices"
	"strings"
)

// stripped are the headers, beside families of them, that StripIdentity removes.
var stripped = []string{
	"authorization", "cookie", "proxy-authorization",
	"connection", "proxy-connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade",
}

// bearerProtocol is how browsers, which cannot set Authorization, put a token into a WebSocket's handshake.
const bearerProtocol = "base64url.bearer.authorization.k8s.io."

// StripIdentity removes from h whatever could say who a request is made as (Authorization, Impersonate-*, X-Remote-*,
// cookies, a bearer token among the WebSocket subprotocols), in any spelling, and the hop-by-hop headers with which a
// request could make a proxy remove what says it (Connection: Impersonate-User). Clients do so with each request; a proxy
// does so with upgrades, and sets Connection and Upgrade anew.
func StripIdentity(h http.Header) {
	for name, values := range h {
		lower := strings.ToLower(name)
		switch {
		case strings.HasPrefix(lower, impersonate), strings.HasPrefix(lower, "x-remote-"), slices.Contains(stripped, lower):
			delete(h, name)
		case lower == "sec-websocket-protocol":
			if kept := withoutBearer(values); len(kept) > 0 {
				h[name] = kept
			} else {
				delete(h, name)
			}
		}
	}
}

// impersonate begins the names of the headers by which a request asks to be made as another user.
const impersonate = "impersonate-"

// Impersonation returns the name of a header by which h asks an API server to act as another user, as kubectl --as does,
// whatever its value and spelling; empty: there is none. A proxy refuses such a request: what StripIdentity leaves of it
// would be made as the caller.
func Impersonation(h http.Header) string {
	for name := range h {
		if strings.HasPrefix(strings.ToLower(name), impersonate) {
			return name
		}
	}
	return ""
}

// withoutBearer takes tokens out of lists of subprotocols.
func withoutBearer(lists []string) []string {
	var kept []string
	for _, list := range lists {
		protocols := slices.DeleteFunc(strings.Split(list, ","), func(p string) bool {
			return strings.HasPrefix(strings.ToLower(strings.TrimSpace(p)), bearerProtocol)
		})
		if len(protocols) > 0 {
			kept = append(kept, strings.TrimSpace(strings.Join(protocols, ",")))
		}
	}
	return kept
}
