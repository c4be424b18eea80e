// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"net/http"
	"slices"
	"strings"
)

// stripped lists, in lower case, the headers that StripIdentity removes by their full name.
var stripped = []string{
	"authorization", "cookie", "proxy-authorization",
	"connection", "proxy-connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "http2-settings",
}

// bearerProtocol is the prefix of a WebSocket subprotocol that contains a token. Browsers send tokens in this way,
// since they cannot set Authorization in a WebSocket handshake.
const bearerProtocol = "base64url.bearer.authorization.k8s.io."

// StripIdentity removes from h the headers that can carry an identity (Authorization, Impersonate-*, X-Remote-*,
// cookies, a bearer token among the WebSocket subprotocols), in any spelling. It also removes the hop-by-hop headers,
// by which a request could make a proxy remove an identity header (Connection: Impersonate-User). Clients call it for
// each request; a proxy must call it for upgrades, and set Connection and Upgrade again.
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

// Impersonation returns the name of a header in h by which a request asks to act as another user. kubectl --as sends
// such headers. The value and the spelling of the header do not matter. It returns "" if h has no such header. A proxy
// refuses a request with such a header: without the header the request would run as the caller.
func Impersonation(h http.Header) string {
	for name := range h {
		if strings.HasPrefix(strings.ToLower(name), impersonate) {
			return name
		}
	}
	return ""
}

// withoutBearer returns lists of WebSocket subprotocols without the subprotocols that contain a token.
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
