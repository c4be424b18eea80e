// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/e2e/planetest"
)

// TestApplySet applies and prunes a set of objects in two regions, as GitOps tools do, with kubectl's ApplySet at the
// merged address. A second run of the same set changes nothing.
func TestApplySet(t *testing.T) {
	planetest.SkipShort(t)
	t.Setenv("KUBECTL_APPLYSET", "true")
	w := newWorld(t)
	r := w.start(t.TempDir())
	c := caller{[]string{"--token=" + w.token(audience)}}
	apply := func(names ...string) string {
		t.Helper()
		var documents []string
		for _, name := range names {
			documents = append(documents, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "+name+", namespace: default}\ndata: {by: git}\n")
		}
		path := filepath.Join(t.TempDir(), "set.yaml")
		require.NoError(t, os.WriteFile(path, []byte(strings.Join(documents, "---\n")), 0o600))
		out, err := r.kubectl(c, all, "apply", "--server-side", "--prune", "--applyset=configmaps/fleet@eu-west-1.loodse", "--namespace=default", "--filename="+path)
		require.NoError(t, err, out)
		return out
	}
	list := func() []string {
		t.Helper()
		out, err := r.kubectl(c, all, "get", "configmaps", "--namespace=default", "-l", "applyset.kubernetes.io/part-of", "-o", "name")
		require.NoError(t, err, out)
		return slices.Sorted(strings.FieldsSeq(out))
	}
	apply("one@eu-west-1.loodse", "one@us-east-1.loodse", "two@us-east-1.loodse")
	require.Equal(t, []string{"configmap/one@eu-west-1.loodse", "configmap/one@us-east-1.loodse", "configmap/two@us-east-1.loodse"}, list())
	require.NotContains(t, apply("one@eu-west-1.loodse", "one@us-east-1.loodse", "two@us-east-1.loodse"), "pruned")

	require.Contains(t, apply("one@us-east-1.loodse", "three@eu-west-1.loodse"), "pruned")
	require.Equal(t, []string{"configmap/one@us-east-1.loodse", "configmap/three@eu-west-1.loodse"}, list())
	require.NotContains(t, apply("one@us-east-1.loodse", "three@eu-west-1.loodse"), "pruned")
}
