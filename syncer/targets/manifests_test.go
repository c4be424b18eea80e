// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/syncer"
	"github.com/atoll-dev/atoll/syncer/targets"
)

var update = flag.Bool("update", false, "write testdata/manifests.yaml anew")

func rendered(t *testing.T, in targets.Install) string {
	t.Helper()
	all, err := targets.Manifests(in)
	require.NoError(t, err)
	var text bytes.Buffer
	for i, obj := range all {
		if i > 0 {
			text.WriteString("---\n")
		}
		data, err := yaml.Marshal(obj.Object)
		require.NoError(t, err)
		text.Write(data)
	}
	return text.String()
}

func TestManifests(t *testing.T) {
	got := rendered(t, targets.Install{
		Target: "my-cluster", Upstream: "1d0e2c5a-0000-4000-8000-000000000000", Kubeconfig: []byte("apiVersion: v1\nkind: Config\n"),
		Image: "registry.example.com/atoll-syncer:v1", Heartbeat: 10 * time.Second,
		Types: []schema.GroupResource{deployments.GroupResource(), configMaps.GroupResource(), configMaps.GroupResource()},
	})
	const path = "testdata/manifests.yaml"
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(string(want), got), "go test ./syncer/targets -run TestManifests -update writes it anew")
	require.NotContains(t, got, "*")
}

// With Unscheduled the manifests grant rights on pods and ReplicaSets, and set the flag of the program.
func TestManifestsOfACounter(t *testing.T) {
	in := targets.Install{Target: target, Upstream: "u", Kubeconfig: []byte("k"), Image: "i"}
	require.NotContains(t, rendered(t, in), "- pods\n")
	require.NotContains(t, rendered(t, in), "-unscheduled")
	in.Unscheduled = 30 * time.Second
	require.Contains(t, rendered(t, in), "- pods\n  verbs:\n  - list\n")
	require.Contains(t, rendered(t, in), "- replicasets\n  verbs:\n  - get\n")
	require.Contains(t, rendered(t, in), "- -unscheduled=30s\n")
}

// Each upstream and each SyncTarget has an installation of its own, whose names are valid on every server.
func TestManifestsAreApart(t *testing.T) {
	names := map[string]bool{}
	for _, target := range []string{"a", "A.b_c", strings.Repeat("x", 29) + "-y", strings.Repeat("x", 63), strings.Repeat("x", 62) + "y"} {
		for _, upstream := range []string{"1", "2"} {
			all, err := targets.Manifests(targets.Install{Target: target, Upstream: upstream, Kubeconfig: []byte("k"), Image: "i"})
			require.NoError(t, err)
			name := all[0].GetName()
			require.Empty(t, validation.IsDNS1123Label(name), name)
			require.False(t, names[name], name)
			names[name] = true
			label := all[0].GetLabels()[targets.InstallationLabel]
			require.NotEmpty(t, label)
			for _, obj := range all {
				require.Equal(t, label, obj.GetLabels()[targets.InstallationLabel], obj.GetKind())
				if obj.GetNamespace() == "" {
					require.Equal(t, name, obj.GetName())
				} else {
					require.Equal(t, name, obj.GetNamespace())
				}
			}
		}
	}
}

// By default the syncer is installed for WorkloadTypes, with a heartbeat every 20 seconds.
func TestManifestsByDefault(t *testing.T) {
	in := targets.Install{Target: target, Upstream: "u", Kubeconfig: []byte("k"), Image: "i"}
	all, err := targets.Manifests(in)
	require.NoError(t, err)
	deployment := all[len(all)-1]
	require.Equal(t, "Deployment", deployment.GetKind())
	containers, _, err := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	require.NoError(t, err)
	args := asJSON(t, containers[0].(map[string]any)["args"])
	require.Contains(t, args, "-heartbeat=20s")
	for _, gr := range syncer.WorkloadTypes() {
		require.Contains(t, args, gr.String())
	}
	first := rendered(t, in)
	require.Equal(t, first, rendered(t, in), "each call returns the same")
}

// With a negative Capacity the manifests grant no rights on nodes.
func TestManifestsWithoutCapacity(t *testing.T) {
	in := targets.Install{Target: target, Upstream: "u", Kubeconfig: []byte("k"), Image: "i"}
	text := rendered(t, in)
	require.Contains(t, text, "- nodes\n")
	require.NotContains(t, text, "-capacity", "an image that lacks the flag still runs")
	in.Capacity = -1
	text = rendered(t, in)
	require.NotContains(t, text, "- nodes\n")
	require.Contains(t, text, "-capacity=-1ns")
}

func TestManifestsRefuse(t *testing.T) {
	good := targets.Install{Target: target, Upstream: "u", Kubeconfig: []byte("k"), Image: "i"}
	for field, spoil := range map[string]func(*targets.Install){
		"Target":         func(in *targets.Install) { in.Target = "-" },
		"Upstream":       func(in *targets.Install) { in.Upstream = "" },
		"Kubeconfig":     func(in *targets.Install) { in.Kubeconfig = nil },
		"Image":          func(in *targets.Install) { in.Image = "" },
		"Types is empty": func(in *targets.Install) { in.Types = []schema.GroupResource{} },
		"Types names what Permit lacks: leave it out, or add the permit: certificatesigningrequests.certificates.k8s.io needs the permit CertificateSigningRequests": func(in *targets.Install) {
			in.Types = []schema.GroupResource{{Group: "certificates.k8s.io", Resource: "certificatesigningrequests"}}
		},
		`Permit[0]: there is no permit "Rbac"`: func(in *targets.Install) { in.Permit = []syncer.Power{"Rbac"} },
		"Types[0]":                             func(in *targets.Install) { in.Types = []schema.GroupResource{{Group: "*", Resource: "*"}} },
	} {
		in := good
		spoil(&in)
		_, err := targets.Manifests(in)
		require.ErrorContains(t, err, field)
	}
}
