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

	"github.com/atoll-dev/atoll/router"
)

// guards are what stands between a request and the peers. Each does one thing in one place, so that the tests can take away
// one after the other and see that it is missed.
type guards struct {
	// What a request must not look like.
	form, methods, traversal, encoding, slashes, connection, upgrade, crossSite func(*http.Request) error

	// Who may make it.
	authenticated func(router.Identity, error) (router.Identity, error)
	impersonation func(*http.Request) error
	operator      func(allowed bool) bool

	// What of it does not reach a peer.
	identity, origins func(http.Header)
	trailers          func(*http.Request)

	// How it goes there, upgraded.
	stream func(*rest.Config)

	// What of the answer does not reach the caller.
	redirect func(*http.Response) error
	answer   func(http.Header)
	hints    func(http.ResponseWriter) http.ResponseWriter
	explain  func(error) refusal
	loggable func(*http.Request) string
}

// intact are all guards.
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

// admit says why a request is refused whoever makes it.
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

// originForm refuses a request that names another server than this one: a peer is chosen by the path.
func originForm(r *http.Request) error {
	if r.URL.Scheme != "" || r.URL.Host != "" || r.URL.Opaque != "" || !strings.HasPrefix(r.URL.Path, "/") {
		return errors.New("the request's target is not a path")
	}
	return nil
}

var methods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions,
}

// knownMethod refuses TRACE, by which a server would echo the credentials that it was sent, CONNECT, and what is unknown.
func knownMethod(r *http.Request) error {
	if !slices.Contains(methods, r.Method) {
		return fmt.Errorf("the method is none of %s", strings.Join(methods, ", "))
	}
	return nil
}

// noTraversal refuses segments that a server resolves against those before them, which are not the caller's to leave.
func noTraversal(r *http.Request) error {
	for segment := range strings.SplitSeq(r.URL.Path, "/") {
		if name, _, _ := strings.Cut(segment, ";"); name == "." || name == ".." {
			return errors.New("the path has a dot segment")
		}
	}
	return nil
}

// encodedOnce refuses what means another path to whoever decodes it once more, or differently.
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

// noEmptySegment refuses //: what follows it may be taken for a host.
func noEmptySegment(r *http.Request) error {
	if strings.Contains(r.URL.Path, "//") {
		return errors.New("the path has an empty segment")
	}
	return nil
}

var connectionOptions = []string{"upgrade", "keep-alive", "close", "te", "http2-settings", ""}

// noNominations refuses a request that wants headers removed on its way.
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

// knownUpgrade refuses all but the two protocols of API servers: h2c would carry requests that nobody here sees.
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

// sameSite refuses what a page of somebody else makes a browser do with its owner's credentials.
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
	return errors.New("pages of that origin may not do this")
}

// failClosed refuses whoever is not known, and ourselves: a proxy has callers.
func failClosed() func(router.Identity, error) (router.Identity, error) {
	nobody, ourselves := router.Identity{}.Fingerprint(), router.Self().Fingerprint()
	return func(id router.Identity, err error) (router.Identity, error) {
		if f := id.Fingerprint(); err != nil || f == nobody || f == ourselves {
			return router.Identity{}, refusal{http.StatusUnauthorized, "it is not known who makes the request"}
		}
		return id, nil
	}
}

// noImpersonation refuses a caller who asks to act as another user, as kubectl --as does. Whether they may is known to the
// region alone; without the headers, the request would be made as the caller, and look as if it had been obeyed.
func noImpersonation(r *http.Request) error {
	if header := router.Impersonation(r.Header); header != "" {
		return refusal{http.StatusForbidden, "impersonation is not possible here: the request has the header " + header +
			"; send it without (kubectl: without --as, --as-uid and --as-group), or to the region's own address"}
	}
	return nil
}

// stripOrigins removes what was said about where a request is from, and what it really asks for.
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

// dropTrailers keeps a request from saying after its body what it must not say before it.
func dropTrailers(r *http.Request) { r.Trailer = nil }

// overHTTP1 makes a connection speak the version that can be upgraded.
func overHTTP1(c *rest.Config) { c.NextProtos = []string{"http/1.1"} }

// noRedirect keeps credentials from following where a peer points.
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

// stripAnswer removes what a browser would take for the word of all peers, since they have one address here.
func stripAnswer(h http.Header) {
	for name := range h {
		if lower := strings.ToLower(name); strings.HasPrefix(lower, "access-control-") || slices.Contains(answers, lower) {
			delete(h, name)
		}
	}
	h.Set("X-Content-Type-Options", "nosniff")
}

// withoutHints hands on no informational answers, whose headers nobody here would look at.
func withoutHints(w http.ResponseWriter) http.ResponseWriter { return finalAnswer{w} }

type finalAnswer struct{ http.ResponseWriter }

func (w finalAnswer) WriteHeader(code int) {
	if code >= http.StatusOK || code == http.StatusSwitchingProtocols {
		w.ResponseWriter.WriteHeader(code)
	}
}

// Unwrap lets http.ResponseController flush and hijack.
func (w finalAnswer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
