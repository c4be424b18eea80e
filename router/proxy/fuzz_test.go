// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bufio"
	"net/http"
	"net/url"
	"path"
	"strings"
	"testing"

	"github.com/atoll-dev/atoll/router"
)

// FuzzPaths checks that every accepted path stays below its region, however often a server decodes it.
func FuzzPaths(f *testing.F) {
	for _, target := range []string{
		euPath + "/api/v1/pods?limit=1", euPath + "/%2e%2e/x", euPath + "/..%252f..", euPath + "//x", euPath + "/a;b/..;/c", "//x" + euPath, "/regions/a.b%2f..",
		"http://x" + euPath, euPath + "/%5c..%5c", euPath + "/a%00", euPath + "/system%3Anode", "/clusters/a.b/%E2%80%A5/", "*", "/regions/a.b/.%2E/",
	} {
		f.Add(target)
	}
	g := intact(nil)
	p := &Proxy{regions: &clients{}, guards: g}
	f.Fuzz(func(t *testing.T, uri string) {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader("GET " + uri + " HTTP/1.1\r\nHost: x\r\n\r\n")))
		if err != nil || g.admit(r) != nil {
			return
		}
		to, err := p.target(r, router.Identity{})
		if err != nil {
			return
		}
		var u url.URL
		to.locate(&u)
		if u.Host != to.key.String()+".invalid" || to.key.Validate() != nil {
			t.Fatalf("%q goes to %q", uri, u.Host)
		}
		again, err := url.Parse(u.String())
		if err != nil || again.Host != u.Host || again.Path != u.Path || u.EscapedPath() != to.path {
			t.Fatalf("%q is sent as %q, which means %q (%v)", uri, u.String(), u.Path, err)
		}
		for decoded := u.EscapedPath(); ; {
			if strings.Contains(decoded, "//") || strings.Contains(decoded, "\\") {
				t.Fatalf("%q can be decoded as %q", uri, decoded)
			}
			if trimmed := strings.TrimSuffix(decoded, "/"); trimmed != "" && path.Clean(decoded) != trimmed {
				t.Fatalf("%q can be decoded as %q, that is %q", uri, decoded, path.Clean(decoded))
			}
			next, err := url.PathUnescape(decoded)
			if err != nil || next == decoded {
				return
			}
			decoded = next
		}
	})
}
