// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/cmd/atoll-gateway/config"
)

const least = `
apiVersion: gateway.atoll.dev/v1alpha1
kind: GatewayConfiguration
serving: {certificateFile: tls.crt, keyFile: tls.key}
source: {file: peers.yaml}
authentication: {clientCertificates: {caFile: ca.crt}}
`

func TestDefaults(t *testing.T) {
	c, err := config.Parse([]byte(least))
	require.NoError(t, err)
	require.Equal(t, ":8443", c.Serving.Address)
	require.Equal(t, ":8081", c.Health.Address)
	require.Equal(t, "json", c.Log.Format)
	require.True(t, *c.Log.Requests)
	require.Equal(t, 10*time.Second, c.Source.CacheWait.Duration)
	require.Equal(t, 10*time.Second, c.Source.ProbeInterval.Duration)
	require.Equal(t, 400, c.Limits.Requests)
	require.InDelta(t, -1, c.Limits.RegionQPS, 0)
	require.Equal(t, 5*time.Second, c.Drain.Delay.Duration)

	// Values of the file stay.
	c, err = config.Parse([]byte(least + "drain: {delay: 0s}\nlog: {requests: false}\nlimits: {waiting: -1}\n"))
	require.NoError(t, err)
	require.Zero(t, c.Drain.Delay.Duration)
	require.False(t, *c.Log.Requests)
	require.Equal(t, -1, c.Limits.Waiting)
}

// edit returns the least configuration with the value at a path of dots replaced.
func edit(t *testing.T, path string, value any) []byte {
	t.Helper()
	var tree map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(least), &tree))
	parts, at := strings.Split(path, "."), tree
	for _, part := range parts[:len(parts)-1] {
		next, ok := at[part].(map[string]any)
		if !ok {
			next = map[string]any{}
			at[part] = next
		}
		at = next
	}
	last := parts[len(parts)-1]
	if at[last] = value; value == nil {
		delete(at, last)
	}
	data, err := yaml.Marshal(tree)
	require.NoError(t, err)
	return data
}

// Each wrong value of a field is one line with the path of the field, the reason and a remedy.
func TestFaults(t *testing.T) {
	review := func(more string) any {
		return yamlOf(t, "{kubeconfigFile: k, audiences: [a]"+more+"}")
	}
	jwt := func(issuer, claims string) any {
		return yamlOf(t, "[{issuer: {"+issuer+"}, claimMappings: {"+claims+"}}]")
	}
	const (
		goodIssuer = "url: 'https://issuer', audiences: [gateway]"
		goodClaims = "username: {claim: sub, prefix: ''}"
	)
	named := map[string]bool{}
	for _, tt := range []struct {
		at    string // the field that is set
		value any
		path  string // the field that the error names
		why   string
	}{
		{"apiVersion", "v1", "apiVersion", `is "v1"`},
		{"kind", "Config", "kind", `is "Config"`},
		{"serving.address", "8443", "serving.address", "no address"},
		{"serving.address", ":70000", "serving.address", "no valid port"},
		{"serving.certificateFile", nil, "serving.certificateFile", "is missing"},
		{"serving.keyFile", "", "serving.keyFile", "is missing"},
		{"serving.allowedOrigins", []any{"https://console.example.com", "console.example.com"}, "serving.allowedOrigins[1]", "no origin"},
		{"serving.allowedOrigins", []any{"https://console.example.com/path"}, "serving.allowedOrigins[0]", "no origin"},
		{"serving.allowedOrigins", []any{"https://*.example.com"}, "serving.allowedOrigins[0]", "no origin"},
		{"source", map[string]any{}, "source", "0 of its fields"},
		{"source.directory", "peers", "source", "2 of its fields"},
		{"source.cacheWait", "1h", "source.cacheWait", "is 1h0m0s"},
		{"source.probeInterval", "1ms", "source.probeInterval", "is 1ms"},
		{"source.execPlugins", []any{"aws"}, "source.execPlugins[0]", "not an absolute path"},
		{"source.execPlugins", []any{"/usr/bin/../bin/aws"}, "source.execPlugins[0]", "not an absolute path"},
		{"authentication", map[string]any{}, "authentication", "no way to authenticate"},
		{"authentication.clientCertificates.caFile", nil, "authentication.clientCertificates.caFile", "is missing"},
		{"authentication.tokenFile", map[string]any{}, "authentication.tokenFile.file", "is missing"},
		{"authentication", yamlOf(t, "{passThrough: {}, tokenFile: {file: f}}"), "authentication.passThrough", "beside another way"},
		{"authentication.tokenReview", yamlOf(t, "{kubeconfigFile: k}"), "authentication.tokenReview.audiences", "is missing"},
		{"authentication.tokenReview", yamlOf(t, "{audiences: [a, '']}"), "authentication.tokenReview.audiences[1]", "is empty"},
		{"authentication.tokenReview", review(", peer: eu"), "authentication.tokenReview", "both set"},
		{"authentication.tokenReview", yamlOf(t, "{peer: EU, audiences: [a]}"), "authentication.tokenReview.peer", "no name of a peer"},
		{"authentication.tokenReview", review(", cacheTTL: 11s"), "authentication.tokenReview.cacheTTL", "is 11s"},
		{"authentication.tokenReview", review(", timeout: 1ms"), "authentication.tokenReview.timeout", "is 1ms"},
		{"authentication.jwt", jwt("url: 'http://issuer', audiences: [gateway]", goodClaims), "authentication.jwt[0].issuer.url", "scheme must be https"},
		{"authentication.jwt", jwt("url: 'https://issuer'", goodClaims), "authentication.jwt[0].issuer.audiences", "at least one"},
		{"authentication.jwt", jwt(goodIssuer, ""), "authentication.jwt[0].claimMappings.username", "claim or expression"},
		{"authentication.jwt", jwt(goodIssuer, "username: {expression: 'claims.('}"), "authentication.jwt[0].claimMappings.username.expression", "compilation failed"},
		{"authentication.jwt", jwt(goodIssuer+", certificateAuthority: nonsense", goodClaims), "authentication.jwt[0].issuer.certificateAuthority", "any valid"},
		{"authentication.mappings", yamlOf(t, "[{user: 'system:a', group: 'system:b', as: c}]"), "authentication.mappings[0]", "both set"},
		{"authentication.mappings", yamlOf(t, "[{as: c}]"), "authentication.mappings[0]", "both missing"},
		{"authentication.mappings", yamlOf(t, "[{user: 'system:a'}]"), "authentication.mappings[0].as", "is missing"},
		{"authentication.mappings", yamlOf(t, "[{group: a, as: 'system:masters'}]"), "authentication.mappings[0].as", "system:masters"},
		{"authentication.mappings", yamlOf(t, "[{group: a, as: b}, {group: a, as: c}]"), "authentication.mappings[1]", "second mapping"},
		{"authentication.extraKeys", []any{"Upper"}, "authentication.extraKeys[0]", `is "Upper"`},
		{"operators", map[string]any{}, "operators.group", "is missing"},
		{"fanout", map[string]any{}, "fanout.logFile", "is missing"},
		{"catalogResources", []any{"secrets.v1", "couchdbs"}, "catalogResources[1]", "no type"},
		{"catalogResources", []any{"couchdbs.loodse.v1"}, "catalogResources[0]", "no type"},
		{"catalogResources", repeated("secrets.v1", 33), "catalogResources", "33 types"},
		{"limits.requests", 1, "limits.requests", "is 1"},
		{"limits.requestsPerRegion", -5, "limits.requestsPerRegion", "is -5"},
		{"limits.requestsPerUser", -1, "limits.requestsPerUser", "is -1"},
		{"limits.streamsPerUser", -1, "limits.streamsPerUser", "is -1"},
		{"limits.waiting", -2, "limits.waiting", "is -2"},
		{"limits.regionQPS", -2, "limits.regionQPS", "is -2"},
		{"limits.sharedWatchBytes", 1, "limits.sharedWatchBytes", "is 1"},
		{"limits.answerTimeout", "1ms", "limits.answerTimeout", "is 1ms"},
		{"limits.wait", "1h", "limits.wait", "is 1h"},
		{"log.level", 11, "log.level", "is 11"},
		{"log.format", "xml", "log.format", `is "xml"`},
		{"health.address", "x", "health.address", "no address"},
		{"health.address", ":8443", "health.address", "serving.address"},
		{"drain.delay", "1h", "drain.delay", "is 1h"},
		{"drain.timeout", "1ms", "drain.timeout", "is 1ms"},
	} {
		_, err := config.Parse(edit(t, tt.at, tt.value))
		faults, ok := errors.AsType[*config.Error](err)
		require.True(t, ok, "%s: %v", tt.at, err)
		require.Len(t, faults.Lines, 1, tt.at)
		require.True(t, strings.HasPrefix(faults.Lines[0], tt.path+": "), faults.Lines[0])
		require.Contains(t, faults.Lines[0], tt.why)
		require.Contains(t, faults.Lines[0], "; accepted: ")
		require.NotContains(t, faults.Lines[0], "\n")
		named[regexp.MustCompile(`\[\d+\]`).ReplaceAllString(tt.path, "")] = true
	}
	anything := []string{ // these take any value that has the right type
		"source.file", "source.directory", "source.central.kubeconfigFile", "source.central.namespace", "source.cacheDirectory",
		"authentication.tokenReview.kubeconfigFile", "authentication.mappings.user", "authentication.mappings.group",
		"authentication.passUIDs", "tokenKeysFile", "audit.file", "log.requests", "authentication.jwt", // whose fields have rows
	}
	for _, path := range fieldsOf(reflect.TypeFor[config.Configuration](), "") {
		require.True(t, named[path] || slices.Contains(anything, path), "no row has a wrong value of %s", path)
	}
}

// fieldsOf returns the paths of the fields of a struct that have no fields of their own.
func fieldsOf(typ reflect.Type, at string) []string {
	var paths []string
	for i := range typ.NumField() {
		field := typ.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		path := strings.TrimPrefix(at+"."+name, ".")
		inner := field.Type
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			inner = inner.Elem()
		}
		switch {
		case field.Anonymous:
			paths = append(paths, fieldsOf(inner, at)...)
		case inner.Kind() == reflect.Struct && inner != reflect.TypeFor[metav1.Duration]() && strings.HasSuffix(inner.PkgPath(), "/config"):
			paths = append(paths, fieldsOf(inner, path)...)
		default:
			paths = append(paths, path)
		}
	}
	return paths
}

// A file that is no configuration at all, an unknown field and a value of another type are faults of one line too.
func TestUnreadable(t *testing.T) {
	for data, why := range map[string]string{
		"{":                                "did not find expected",
		least + "sorce: {}":                `unknown field "sorce"`,
		least + "kind: Again":              "already set",
		least + "limits: {requests: many}": "requests",
		least + "drain: {delay: soon}":     "soon",
	} {
		_, err := config.Parse([]byte(data))
		faults, ok := errors.AsType[*config.Error](err)
		require.True(t, ok, "%q: %v", data, err)
		require.Len(t, faults.Lines, 1)
		require.Contains(t, faults.Lines[0], why)
		require.NotContains(t, err.Error(), "\n")
	}
}

func TestAllFaultsAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gateway.yaml")
	require.NoError(t, os.WriteFile(path, []byte("kind: GatewayConfiguration\n"), 0o600))
	_, err := config.Load(path)
	lines := strings.Split(err.Error(), "\n")
	require.Len(t, lines, 5)
	for _, line := range lines {
		require.True(t, strings.HasPrefix(line, path+": "), line)
	}
	_, err = config.Load(path + "x")
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestCatalog(t *testing.T) {
	c, err := config.Parse(edit(t, "catalogResources", []any{"secrets.v1", "couchdbs.v1alpha1.eu.loodse"}))
	require.NoError(t, err)
	types, bad := c.Catalog()
	require.Equal(t, -1, bad)
	require.Equal(t, []schema.GroupVersionResource{
		{Version: "v1", Resource: "secrets"}, {Group: "eu.loodse", Version: "v1alpha1", Resource: "couchdbs"},
	}, types)
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(least))
	f.Fuzz(func(_ *testing.T, data []byte) { _, _ = config.Parse(data) })
}

func ExampleParse() {
	_, err := config.Parse([]byte(`
apiVersion: gateway.atoll.dev/v1alpha1
kind: GatewayConfiguration
serving: {certificateFile: tls.crt}
source: {central: {}}
authentication: {passThrough: {}}
`))
	fmt.Println(err)
	// Output:
	// configuration: serving.keyFile: is missing; accepted: the path of the certificate's key in PEM
}

func yamlOf(t *testing.T, text string) any {
	t.Helper()
	var v any
	require.NoError(t, yaml.Unmarshal([]byte(text), &v))
	return v
}

func repeated(text string, n int) []any {
	all := make([]any, n)
	for i := range all {
		all[i] = text
	}
	return all
}
