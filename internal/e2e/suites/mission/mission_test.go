// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package mission_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/e2e/planetest"
)

// manifests is the directory of the proposals' manifests, verbatim.
const manifests = "../../../../config/testdata/mission"

// TestProposals applies the unchanged manifests in each way that kubectl has, with their statuses.
// It requires that kubectl get prints the states that the proposals show.
func TestProposals(t *testing.T) {
	p := planetest.Shared(t, 1)[0]
	api(t, p)
	k := newKubectl(t, p)
	planetest.Apply(t, p, "{apiVersion: v1, kind: Namespace, metadata: {name: loodse}}")
	for _, tc := range []struct {
		file     string
		resource string
		rows     []string // as regular expressions
	}{
		{"regionclaims.yaml", "regionclaims", []string{`eu-west-1 +Bound`, `us-east-1 +Conflict`}},
		{"peers.yaml", "peers", []string{`local +Ready +v0\.2\.0`, `eu-west +Ready`, `us-east +Ready`}},
		{"kubecarrier.yaml", "kubecarriers", []string{`kubecarrier +true`}},
		{"synctarget.yaml", "synctargets", []string{`my-cluster`}},
	} {
		t.Run(tc.file, func(t *testing.T) {
			file := filepath.Join(manifests, tc.file)
			k.must(t, "", "apply", "--validate=strict", "-f", file)
			k.must(t, "", "apply", "--validate=strict", "-f", file)
			k.must(t, "", "apply", "--server-side", "--force-conflicts", "--validate=strict", "-f", file)
			k.must(t, "", "replace", "--validate=strict", "-f", file)
			k.must(t, "", "apply", "--server-side", "--subresource=status", "--force-conflicts", "--validate=strict", "-f", file)
			table := k.must(t, "", "get", tc.resource, "-n", "loodse")
			for _, row := range tc.rows {
				require.Regexp(t, `(?m)^`+row, table)
			}
			k.must(t, "", "delete", "-f", file)
			k.must(t, "", "create", "--validate=strict", "-f", file)
		})
	}
	t.Run("names that people use", func(t *testing.T) {
		for _, short := range []string{"rcl", "scl", "acc", "st", "kc", "ps", "fop", "cds", "pp", "reg"} {
			out := k.must(t, "", "get", short, "-A")
			require.NotContains(t, out, "could also match", "another resource has the short name")
		}
		all := k.must(t, "", "get", "atoll", "-n", "loodse")
		require.Contains(t, all, "regionclaim.kubecarrier.io/eu-west-1")
		require.Contains(t, all, "peer.master.kubecarrier.io/us-east")
		require.Contains(t, k.must(t, "", "explain", "servicecluster.spec.fanout.stage"), "Decided")
	})
}
