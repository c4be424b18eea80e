// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/atoll-dev/atoll/cmd/atoll-gateway/config"
	"github.com/atoll-dev/atoll/cmd/atoll-gateway/gateway"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// The page for operators lists the gateway's own metrics with their labels.
func requireListed(t *testing.T, metrics string) {
	t.Helper()
	page, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	series := regexp.MustCompile(`(?m)^(atoll_gateway_[a-z_]+?)(?:_count)?(?:\{(.*)\})? `)
	label := regexp.MustCompile(`([a-z]+)="`)
	want := map[string]bool{}
	for _, s := range series.FindAllStringSubmatch(metrics, -1) {
		name := s[1]
		if strings.HasSuffix(name, "_bucket") || strings.HasSuffix(name, "_sum") {
			continue
		}
		var labels []string
		for _, l := range label.FindAllStringSubmatch(s[2], -1) {
			labels = append(labels, l[1])
		}
		slices.Sort(labels)
		want[name+" "+strings.Join(labels, ",")] = true
	}
	have := map[string]bool{}
	for _, r := range regexp.MustCompile("(?m)^\\| `(atoll_gateway_[a-z_]+)(?:\\{(.*)\\})?` ").FindAllStringSubmatch(string(page), -1) {
		labels := strings.Split(r[2], ",")
		slices.Sort(labels)
		have[r[1]+" "+strings.Join(labels, ",")] = true
	}
	require.Equal(t, want, have)
}

// One region, all regions and a peer are served to callers; each request is in the log, the audit log and the metrics.
func TestRequests(t *testing.T) {
	s := newSite(t, regiontest.Options{})
	p := s.start(s.config(nil))
	require.Equal(t, "[+]draining ok\n[+]source ok\n[+]authentication ok\n[+]region eu-west-1.loodse ok\n[+]region us-east-1.loodse ok\n", p.allUp())

	for _, tt := range []struct {
		path, token string
		code        int
		user, place string
	}{
		{"/regions/eu-west-1.loodse/api/v1/namespaces/default", "t-alice", 200, "alice", "eu-west-1.loodse"},
		{"/regions/*/api/v1/namespaces", "t-alice", 200, "alice", "*"},
		{"/regions/*/api/v1/namespaces?secret=x", "nobody", 401, "", "*"},
		{"/regions/mars-1.loodse/api/v1/namespaces", "t-alice", 404, "alice", "mars-1.loodse"},
		{"/peers/us-east/api/v1/namespaces", "t-alice", 404, "alice", ""},
		{"/peers/us-east/api/v1/namespaces", "t-ops", 200, "olga", "us-east.peer"},
	} {
		before := len(p.audited.events(t))
		code, body := p.get(tt.path, tt.token)
		require.Equal(t, tt.code, code, "%s: %s", tt.path, body)
		var events []auditv1.Event
		require.Eventually(t, func() bool {
			events = p.audited.events(t)
			return len(events) > before
		}, time.Minute, time.Millisecond)
		e := events[before]
		require.Equal(t, tt.user, e.User.Username)
		require.EqualValues(t, tt.code, e.ResponseStatus.Code)
		require.Equal(t, tt.place, e.Annotations["gateway.atoll.dev/region"])
		require.Equal(t, "namespaces", e.ObjectRef.Resource)
		require.Equal(t, []string{"127.0.0.1"}, e.SourceIPs)
		require.NotContains(t, e.RequestURI, "secret")
		require.Equal(t, auditv1.StageResponseComplete, e.Stage)
		p.lines.Await(t, `"msg"="request"`, `"audit"="`+string(e.AuditID)+`"`, `"user"="`+tt.user+`"`, `"resource"="namespaces"`, `"region"="`+tt.place+`"`)
	}
	_, metrics := p.plain("/metrics")
	for _, line := range []string{
		`atoll_gateway_requests_total{code="200",region="eu-west-1.loodse",verb="get"} 1`,
		`atoll_gateway_requests_total{code="401",region="*",verb="list"} 1`,
		`atoll_gateway_requests_total{code="404",region="unknown",verb="list"} 1`,
		`atoll_gateway_region_up{peer="us-east",region="us-east-1.loodse"} 1`,
		`atoll_gateway_peers_from_cache 0`, `atoll_gateway_audit_events_lost_total 0`,
		`atoll_gateway_request_duration_seconds_count{region="*",verb="list"} 2`,
		// The Observers of the ring, of the router and of merged lists.
		`atoll_peer_healthy{peer="us-east"} 1`,
		`atoll_aggregate_lists_total{region="us-east-1.loodse",state="OK"} 1`,
	} {
		require.Contains(t, metrics, line+"\n")
	}
	require.Contains(t, metrics, `atoll_router_requests_total{outcome="success",peer="eu-west"} `)
	requireListed(t, metrics)
	code, _ := p.plain("/livez")
	require.Equal(t, http.StatusOK, code)
}

// allUp waits until all regions answer, and returns the answer of /readyz.
func (p *program) allUp() string {
	p.t.Helper()
	text := ""
	require.Eventually(p.t, func() bool {
		text = p.ready()
		return !strings.Contains(text, "[!]")
	}, time.Minute, 5*time.Millisecond)
	return text
}

// A watch has an audit event when it begins, and one when it ends.
func TestWatchesAreAuditedFromTheirBeginning(t *testing.T) {
	s := newSite(t, regiontest.Options{})
	p := s.start(s.config(nil))
	p.allUp()
	for _, path := range []string{"/regions/eu-west-1.loodse", "/regions/*"} {
		before := len(p.audited.events(t))
		code, body := p.get(path+"/api/v1/namespaces?watch=1&timeoutSeconds=1", "t-alice")
		require.Equal(t, http.StatusOK, code, body)
		var events []auditv1.Event
		require.Eventually(t, func() bool {
			events = p.audited.events(t)
			return len(events) == before+2
		}, time.Minute, time.Millisecond)
		began, ended := events[before], events[before+1]
		require.Equal(t, auditv1.StageResponseStarted, began.Stage)
		require.Equal(t, auditv1.StageResponseComplete, ended.Stage)
		require.Equal(t, began.AuditID, ended.AuditID)
		require.Equal(t, "alice", began.User.Username)
		require.Equal(t, "watch", began.Verb)
		require.EqualValues(t, http.StatusOK, began.ResponseStatus.Code)
		require.True(t, began.StageTimestamp.Time.Before(ended.StageTimestamp.Time))
	}
}

// A region that is away is named, and does not make the gateway unready.
func TestARegionIsAway(t *testing.T) {
	s := newSite(t, regiontest.Options{})
	p := s.start(s.config(nil))
	p.allUp()
	s.servers["us-east"].Partition(true)
	require.Eventually(t, func() bool {
		return strings.Contains(p.ready(), "[!]region us-east-1.loodse: Unhealthy for ")
	}, time.Minute, 5*time.Millisecond)
	code, _ := p.get("/regions/eu-west-1.loodse/api/v1/namespaces", "t-alice")
	require.Equal(t, http.StatusOK, code)
	_, metrics := p.plain("/metrics")
	require.Contains(t, metrics, `atoll_gateway_region_up{peer="us-east",region="us-east-1.loodse"} 0`)
	s.servers["us-east"].Partition(false)
	p.allUp()
}

// The serving certificate and the tokens are replaced while the gateway runs; what cannot be used changes nothing.
func TestFilesAreReadAgain(t *testing.T) {
	s := newSite(t, regiontest.Options{})
	p := s.start(s.config(nil))
	p.allUp()
	const path = "/regions/eu-west-1.loodse/api/v1/namespaces"
	s.write("tls.crt", []byte("none"))
	s.write("tokens.csv", []byte("none"))
	s.write("keys", []byte("none"))
	for _, files := range []string{"serving certificate", "tokens", "keys of tokens"} {
		p.lines.Await(t, "cannot be used", `"files"="`+files+`"`)
	}
	code, _ := p.get(path, "t-alice")
	require.Equal(t, http.StatusOK, code)

	s.ca = s.certify("another")
	s.write("tokens.csv", []byte("t-bob,bob,3\n"))
	require.Eventually(t, func() bool { code, _ := p.get(path, "t-bob"); return code == http.StatusOK }, time.Minute, 5*time.Millisecond)
	code, _ = p.get(path, "t-alice")
	require.Equal(t, http.StatusUnauthorized, code)
}

// Nothing is started if a file of the configuration is wrong, and the error names the field.
func TestWrongFiles(t *testing.T) {
	s := newSite(t, regiontest.Options{})
	s.write("empty", nil)
	for field, edit := range map[string]func(*config.Configuration){
		"serving.certificateFile: ": func(c *config.Configuration) { c.Serving.KeyFile = s.path("none") },
		"source.cacheDirectory: ":   func(c *config.Configuration) { c.Source.CacheDirectory = s.path("none") },
		"source.central: kubeconfigFile: ": func(c *config.Configuration) {
			c.Source = config.Source{Central: &config.Central{KubeconfigFile: s.path("none")}}
		},
		"source.central: kubeconfigFile is": func(c *config.Configuration) { c.Source = config.Source{Central: &config.Central{}} },
		"authentication.tokenFile.file: ":   func(c *config.Configuration) { c.Authentication.TokenFile.File = s.path("empty") },
		"tokenKeysFile: ":                   func(c *config.Configuration) { c.TokenKeysFile = s.path("empty") },
		"audit.file: ":                      func(c *config.Configuration) { c.Audit.File = s.path("none/audit") },
		"fanout.logFile: ":                  func(c *config.Configuration) { c.Fanout = &config.Fanout{LogFile: s.path("peers.yaml")} },
	} {
		_, err := gateway.New(t.Context(), s.config(edit), gateway.Options{})
		require.ErrorContains(t, err, field)
		require.True(t, strings.HasPrefix(err.Error(), field), err.Error())
	}
	_, err := gateway.New(t.Context(), nil, gateway.Options{})
	require.ErrorContains(t, err, "configuration is nil")
	// An address that is taken is an error of Start, and nothing stays behind.
	var listen net.ListenConfig
	taken, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = taken.Close() }()
	for field, edit := range map[string]func(*config.Configuration){
		"serving.address: ": func(c *config.Configuration) { c.Serving.Address = taken.Addr().String() },
		"health.address: ":  func(c *config.Configuration) { c.Health.Address = taken.Addr().String() },
	} {
		c := s.config(edit)
		c.Fanout = &config.Fanout{LogFile: s.path("taken")} // is closed by the first Start, so that the second one can open it
		g, err := gateway.New(t.Context(), c, gateway.Options{})
		require.NoError(t, err)
		require.ErrorContains(t, g.Start(t.Context()), field)
	}
	// A Gateway that is not started releases its files.
	for range 2 {
		g, err := gateway.New(t.Context(), s.config(func(c *config.Configuration) {
			c.Fanout = &config.Fanout{LogFile: s.path("wal")}
			c.Audit.File = s.path("audit")
		}), gateway.Options{})
		require.NoError(t, err)
		require.NoError(t, g.Close())
	}
}
