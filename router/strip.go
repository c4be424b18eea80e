// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"net/http"
	"slices"
	"strings"
)

// stripped are the single headers that StripIdentity removes, in lower case.
var stripped = []string{
	"authorization", "cookie", "proxy-authorization",
	"connection", "proxy-connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade",
}

// bearerProtocol is the prefix by which browsers, which cannot set Authorization, put a token into a WebSocket
// handshake.
const bearerProtocol = "base64url.bearer.authorization.k8s.io."

// StripIdentity removes from h every header that could carry an identity (Authorization, Impersonate-*, X-Remote-*,
// cookies, a bearer token among the WebSocket subprotocols), in any spelling, and the hop-by-hop headers, by which a
// request could make a proxy remove an identity header (Connection: Impersonate-User). Clients call it for each
// request; a proxy must call it for upgrades, and set Connection and Upgrade again.
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

// impersonate is the prefix of the headers by which a request asks to act as another user.
const impersonate = "impersonate-"

// Impersonation returns the name of a header by which h asks an API server to act as another user, as kubectl --as
// does, whatever its value and spelling, or "". A proxy refuses such a request: without the header it would run as
// the caller.
func Impersonation(h http.Header) string {
	for name := range h {
		if strings.HasPrefix(strings.ToLower(name), impersonate) {
			return name
		}
	}
	return ""
}

// withoutBearer removes tokens from lists of subprotocols.
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
