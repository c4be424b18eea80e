// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/region/servicecluster"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const head = "apiVersion: manager.atoll.dev/v1alpha1\nkind: ManagerConfiguration\n"

func TestDefaults(t *testing.T) {
	c, err := Parse([]byte(head))
	require.NoError(t, err)
	require.Equal(t, &Configuration{
		TypeMeta: metav1.TypeMeta{APIVersion: APIVersion, Kind: Kind},
		Central:  Central{Namespace: "kubecarrier-system"},
		Peers:    Peers{ProbeInterval: &metav1.Duration{Duration: 10 * time.Second}, Join: new(true)},
		Fanout:   Fanout{SweepInterval: &metav1.Duration{Duration: 30 * time.Second}, AdoptApplied: new(true)},
		ServiceClusters: ServiceClusters{
			ProbeInterval: &metav1.Duration{Duration: 30 * time.Second}, ProbeTimeout: &metav1.Duration{Duration: 10 * time.Second},
		},
		Log: Log{Format: "json"}, Health: Health{Address: ":8081"},
	}, c)
}

// faults has, for each field, a content that is wrong, and what the line says about it.
var faults = []struct{ field, content, want string }{
	{"central.namespace", "central: {namespace: Big}", `central.namespace: "Big" is not the name of a namespace; accepted: a DNS label`},
	{"identity", "identity: a/b", `identity: "a/b" is no name; accepted: a DNS name`},
	{"peers.probeInterval", "peers: {probeInterval: 1ms}", "peers.probeInterval: is 1ms; accepted: 1s to 1h0m0s"},
	{"peers.execPlugins", "peers: {execPlugins: [aws]}", `peers.execPlugins[0]: "aws" is not an absolute path; accepted: `},
	{"peers.join", "peers: {join: perhaps}", "peers.join of type bool"},
	{"fanout.sweepInterval", "fanout: {sweepInterval: 2h}", "fanout.sweepInterval: is 2h0m0s; accepted: 1s to 1h0m0s"},
	{"fanout.adoptApplied", "fanout: {adoptApplied: 1}", "fanout.adoptApplied of type bool"},
	{"serviceClusters.probeInterval", "serviceClusters: {probeInterval: 0s}", "serviceClusters.probeInterval: is 0s; accepted: "},
	{"serviceClusters.probeTimeout", "serviceClusters: {probeTimeout: 2m}", "serviceClusters.probeTimeout: is 2m0s; accepted: 1s to 1m0s"},
	{"serviceClusters.allowAddresses", "serviceClusters: {allowAddresses: [localhost]}", `serviceClusters.allowAddresses[0]: "localhost" is no network; accepted: `},
	{"serviceClusters.denyAddresses", "serviceClusters: {denyAddresses: [10.0.0.0/8, 10.1.2.3/8]}", `serviceClusters.denyAddresses[1]: "10.1.2.3/8" is no network; accepted: `},
	{"clusters.tokenNamespace", "clusters: {tokenNamespace: A}", `clusters.tokenNamespace: "A" is not the name of a namespace; accepted: `},
	{"clusters.longestCertificate", "clusters: {longestCertificate: 1m}", "clusters.longestCertificate: is 1m0s; accepted: 1h0m0s to 8760h0m0s"},
	{"workloads.types", "workloads: {types: [pods]}", `workloads.types[0]: "pods" is not a type of Kubernetes that is divided; accepted: cronjobs.batch, daemonsets.apps, deployments.apps`},
	{"workloads.types", "workloads: {types: [jobs.batch, jobs.batch]}", `workloads.types[1]: "jobs.batch" is there twice; accepted: each type once`},
	{"workloads.typeFiles", "workloads: {typeFiles: ['']}", "workloads.typeFiles[0]: is empty; accepted: the path of a file"},
	{"workloads.followTypes", "workloads: {followTypes: perhaps}", "workloads.followTypes of type bool"},
	{"clusterDaemonSets.clusterLabel", "clusterDaemonSets: {clusterLabel: a b}", `clusterDaemonSets.clusterLabel: "a b" is not the key of a label; accepted: `},
	{"log.level", "log: {level: 11}", "log.level: is 11; accepted: 0 to 10"},
	{"log.format", "log: {format: xml}", `log.format: is "xml"; accepted: json or text`},
	{"health.address", "health: {address: here}", `health.address: "here" is no address; accepted: HOST:PORT or :PORT`},
	{"central.kubeconfigFile", "central: {kubeconfigFile: [a]}", "central.kubeconfigFile of type string"},
}

func TestFaults(t *testing.T) {
	for _, tt := range faults {
		_, err := Parse([]byte(head + tt.content))
		require.ErrorContains(t, err, tt.want, tt.content)
		require.NotContains(t, err.Error(), "\n")
	}
	_, err := Parse([]byte("kind: Other"))
	require.ErrorContains(t, err, `apiVersion: is ""; accepted: manager.atoll.dev/v1alpha1`)
	require.ErrorContains(t, err, `kind: is "Other"; accepted: ManagerConfiguration`)
	_, err = Parse([]byte(head + "more: 1"))
	require.ErrorContains(t, err, `unknown field "more"`)
}

// TestEveryFieldHasAFault fails if a field has no row in faults.
func TestEveryFieldHasAFault(t *testing.T) {
	tested := map[string]bool{}
	for _, tt := range faults {
		tested[tt.field] = true
	}
	var walk func(path string, of reflect.Type)
	walk = func(path string, of reflect.Type) {
		for i := range of.NumField() {
			field := of.Field(i)
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name == "" {
				continue // apiVersion and kind
			}
			at := strings.TrimPrefix(path+"."+name, ".")
			of := field.Type
			if of.Kind() == reflect.Pointer {
				of = of.Elem()
			}
			if of.Kind() == reflect.Struct && of != reflect.TypeFor[metav1.Duration]() {
				walk(at, of)
				continue
			}
			require.True(t, tested[at], "no wrong content of %s is tested", at)
		}
	}
	walk("", reflect.TypeFor[Configuration]())
}

func TestDefaultsOfClusters(t *testing.T) {
	c, err := Parse([]byte(head + "clusters: {}"))
	require.NoError(t, err)
	require.Equal(t, &Clusters{TokenNamespace: "atoll-join", LongestCertificate: &metav1.Duration{Duration: 24 * time.Hour}}, c.Clusters)
}

func TestDefaultsOfWorkloads(t *testing.T) {
	c, err := Parse([]byte(head + "workloads: {}"))
	require.NoError(t, err)
	require.Equal(t, &Workloads{Types: []string{"deployments.apps"}, FollowTypes: new(true)}, c.Workloads)
	for _, name := range divided() {
		require.Equal(t, name, KindOf(name).Resource().GroupResource().String())
	}
}

func TestAddresses(t *testing.T) {
	c, err := Parse([]byte(head + "serviceClusters: {allowAddresses: [127.0.0.1/32], denyAddresses: [10.96.0.0/12, 'fd00::/8']}"))
	require.NoError(t, err)
	require.Equal(t, servicecluster.Addresses{
		Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")},
		Deny:  []netip.Prefix{netip.MustParsePrefix("10.96.0.0/12"), netip.MustParsePrefix("fd00::/8")},
	}, c.ServiceClusters.Addresses())
}
