// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router"
)

// guards check and clean every request and answer. Each guard is a separate func, so that a test can disable one guard
// and check that an attack then succeeds.
type guards struct {
	// Each of these returns an error for requests with a forbidden form.
	form, methods, traversal, encoding, slashes, connection, upgrade, crossSite func(*http.Request) error

	// Each of these refuses requests of callers that may not make them.
	authenticated func(router.Identity, error) (router.Identity, error)
	impersonation func(*http.Request) error
	operator      func(allowed bool) bool

	// These remove headers and trailers that must not reach a peer.
	identity, origins func(http.Header)
	trailers          func(*http.Request)

	// stream configures the connection of an upgraded request.
	stream func(*rest.Config)

	// These refuse or remove parts of answers, errors and requests that must not reach the caller or the log.
	redirect func(*http.Response) error
	answer   func(http.Header)
	hints    func(http.ResponseWriter) http.ResponseWriter
	explain  func(error) refusal
	loggable func(*http.Request) string
}

// intact returns the guards with each of them enabled.
func intact(origin func(string) bool) guards {
	return guards{
		form: originForm, methods: knownMethod, traversal: noTraversal, encoding: encodedOnce, slashes: noEmptySegment,
		connection: noNominations, upgrade: knownUpgrade,
		crossSite:     func(r *http.Request) error { return sameSite(r, origin) },
		authenticated: failClosed(), impersonation: noImpersonation, operator: func(allowed bool) bool { return allowed },
		identity: router.StripIdentity, origins: stripOrigins, trailers: dropTrailers,
		stream: overHTTP1, redirect: noRedirect, answer: stripAnswer, hints: withoutHints, explain: explain, loggable: loggable,
	}
}

// admit returns an error if the request is refused for every caller, and nil otherwise.
func (g *guards) admit(r *http.Request) error {
	for _, check := range []func(*http.Request) error{
		g.form, g.methods, g.traversal, g.encoding, g.slashes, g.connection, g.upgrade, g.crossSite,
	} {
		if err := check(r); err != nil {
			return err
		}
	}
	return nil
}

// originForm refuses a request whose target names a server: only the path selects a peer.
func originForm(r *http.Request) error {
	if r.URL.Scheme != "" || r.URL.Host != "" || r.URL.Opaque != "" || !strings.HasPrefix(r.URL.Path, "/") {
		return errors.New("the request's target is not a path")
	}
	return nil
}

var methods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions,
}

// knownMethod refuses CONNECT, unknown methods, and TRACE, with which a server would echo the gateway's credentials.
func knownMethod(r *http.Request) error {
	if !slices.Contains(methods, r.Method) {
		return fmt.Errorf("the method is not one of %s", strings.Join(methods, ", "))
	}
	return nil
}

// noTraversal refuses dot segments: a server that resolves them leaves the caller's region.
func noTraversal(r *http.Request) error {
	for segment := range strings.SplitSeq(r.URL.Path, "/") {
		if name, _, _ := strings.Cut(segment, ";"); name == "." || name == ".." {
			return errors.New("the path has a dot segment")
		}
	}
	return nil
}

// encodedOnce refuses paths that a server could read as another path, for example by decoding them twice.
func encodedOnce(r *http.Request) error {
	lower := strings.ToLower(r.URL.EscapedPath())
	for _, hidden := range []string{"%2f", "%5c", "%25", "%00", "\\"} {
		if strings.Contains(lower, hidden) {
			return fmt.Errorf("the path has %s in it", hidden)
		}
	}
	if strings.ContainsFunc(r.URL.Path, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		return errors.New("the path has a control character in it")
	}
	return nil
}

// noEmptySegment refuses //: a server may read the following segment as a host.
func noEmptySegment(r *http.Request) error {
	if strings.Contains(r.URL.Path, "//") {
		return errors.New("the path has an empty segment")
	}
	return nil
}

var connectionOptions = []string{"upgrade", "keep-alive", "close", "te", "http2-settings", ""}

// noNominations refuses a Connection header that names other headers, since a proxy would remove these.
func noNominations(r *http.Request) error {
	for _, list := range slices.Concat(r.Header["Connection"], r.Header["Proxy-Connection"]) {
		for option := range strings.SplitSeq(list, ",") {
			if !slices.Contains(connectionOptions, strings.ToLower(strings.TrimSpace(option))) {
				return errors.New("the Connection header names other headers")
			}
		}
	}
	return nil
}

// knownUpgrade refuses protocols other than the two that API servers use: with h2c, further requests would bypass
// the guards.
func knownUpgrade(r *http.Request) error {
	if len(r.Header["Upgrade"]) == 0 {
		return nil
	}
	switch strings.ToLower(strings.Join(r.Header["Upgrade"], ",")) {
	case "websocket", "spdy/3.1":
		return nil
	default:
		return errors.New("the protocol to upgrade to is neither websocket nor SPDY/3.1")
	}
}

// sameSite refuses writes and streams that a page of another site requests: a browser sends them with its user's
// credentials.
func sameSite(r *http.Request, allowed func(string) bool) error {
	origin := r.Header.Get("Origin")
	if origin == "" || (r.Method == http.MethodGet || r.Method == http.MethodHead) && upgradeOf(r.Header) == "" {
		return nil
	}
	if u, err := url.Parse(origin); err == nil && u.Host != "" && strings.EqualFold(u.Host, r.Host) {
		return nil
	}
	if allowed != nil && allowed(origin) {
		return nil
	}
	return errors.New("pages of this origin may not write or open streams here")
}

// failClosed returns a guard that refuses unknown callers and router.Self: a proxy never uses its own rights.
func failClosed() func(router.Identity, error) (router.Identity, error) {
	nobody, ourselves := router.Identity{}.Fingerprint(), router.Self().Fingerprint()
	return func(id router.Identity, err error) (router.Identity, error) {
		if errors.Is(err, region.ErrUnavailable) {
			return router.Identity{}, refusal{http.StatusServiceUnavailable, "who makes the request cannot be checked at present; nothing was done"}
		}
		if f := id.Fingerprint(); err != nil || f == nobody || f == ourselves {
			return router.Identity{}, refusal{http.StatusUnauthorized, "it is not known who makes the request"}
		}
		return id, nil
	}
}

// noImpersonation refuses a request to act as another user, such as kubectl --as sends. Only the region knows
// whether the caller may do so. Without the headers the request would run as the caller, and seem to have
// succeeded.
func noImpersonation(r *http.Request) error {
	if header := router.Impersonation(r.Header); header != "" {
		return refusal{http.StatusForbidden, "impersonation is not possible here: the request has the header " + header +
			"; send it without (kubectl: without --as, --as-uid and --as-group), or to the region's own address"}
	}
	return nil
}

// stripOrigins removes headers that claim the origin of a request, and headers that override its method or path.
func stripOrigins(h http.Header) {
	for name := range h {
		switch lower := strings.ToLower(name); {
		case strings.HasPrefix(lower, "x-forwarded-"), strings.HasPrefix(lower, "x-original-"), strings.HasPrefix(lower, "x-client-"),
			strings.HasPrefix(lower, "x-ssl-"), slices.Contains(origins, lower):
			delete(h, name)
		}
	}
}

var origins = []string{"forwarded", "x-real-ip", "true-client-ip", "x-rewrite-url", "x-http-method-override", "x-http-method", "x-method-override"}

// dropTrailers removes trailers, which could carry identity headers after the body.
func dropTrailers(r *http.Request) { r.Trailer = nil }

// overHTTP1 makes a connection use HTTP/1.1, which can be upgraded.
func overHTTP1(c *rest.Config) { c.NextProtos = []string{"http/1.1"} }

// noRedirect returns an error for a redirect, so that no credentials are sent to its target.
func noRedirect(resp *http.Response) error {
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return fmt.Errorf("the peer answers with a redirect (%d)", resp.StatusCode)
	default:
		return nil
	}
}

var answers = []string{
	"set-cookie", "set-cookie2", "location", "content-location", "refresh", "alt-svc", "strict-transport-security", "public-key-pins",
	"clear-site-data", "service-worker-allowed", "report-to", "reporting-endpoints", "nel", "origin-agent-cluster", "sourcemap",
}

// stripAnswer removes headers that a browser would apply to all peers, since all peers share the gateway's address. It
// also keeps browsers from guessing the type of the content.
func stripAnswer(h http.Header) {
	for name := range h {
		if lower := strings.ToLower(name); strings.HasPrefix(lower, "access-control-") || slices.Contains(answers, lower) {
			delete(h, name)
		}
	}
	h.Set("X-Content-Type-Options", "nosniff")
}

// withoutHints drops informational answers, whose headers no guard checks.
func withoutHints(w http.ResponseWriter) http.ResponseWriter { return finalAnswer{w} }

type finalAnswer struct{ http.ResponseWriter }

func (w finalAnswer) WriteHeader(code int) {
	if code >= http.StatusOK || code == http.StatusSwitchingProtocols {
		w.ResponseWriter.WriteHeader(code)
	}
}

// Unwrap lets http.ResponseController flush and hijack.
func (w finalAnswer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
