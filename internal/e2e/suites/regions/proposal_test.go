// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regions_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
)

// manifests is the directory of the proposal's manifests, verbatim.
const manifests = "../../../../config/testdata/mission"

// TestProposal applies the manifests of the multi-region proposal, and waits for the statuses that
// the proposal prints.
func TestProposal(t *testing.T) {
	w := newWorld(t)
	central := w.kubectl["central"]

	for _, p := range []*plane.Plane{w.euWest, w.usEast} {
		w.store(t, p.Name(), kubeconfig(t, p))
	}
	central.must(t, "apply", "--validate=strict", "-f", filepath.Join(manifests, "peers.yaml"))
	w.register(t, "ap-south", w.apSouth)
	program, _ := w.start(t, "story", "a", nil)
	central.must(t, "apply", "--validate=strict", "-f", filepath.Join(manifests, "kubecarrier.yaml"))
	central.must(t, "label", "kubecarrier", "kubecarrier", "app.kubernetes.io/version=v0.2.0")
	w.awaitPeers(t, "local", "eu-west", "us-east", "ap-south")
	w.form(t, program)

	// Accounts are created in the central plane only.
	for _, name := range []string{"loodse", "not-loodse"} {
		planetest.Apply(t, w.central, provider(name))
	}
	for _, name := range []string{"loodse", "not-loodse"} {
		w.of(w.central).await(t, "Account "+name+" is everywhere", accounts, "", name, isObserved,
			has("Ready", "phase"), has(int64(4), "peers", "total"), has(int64(4), "peers", "present"),
			hasCondition("Ready", "True", ""), hasCondition("PresentInAllPeers", "True", ""))
		for _, p := range w.planes {
			w.of(p).get(t, namespaces, "", name)
		}
	}

	// A ServiceCluster in us-east claims the region us-east-1 of loodse. Then eu-west claims the
	// same region, as in the proposal, which shows the Conflict there.
	for _, name := range []string{"loodse", "not-loodse"} {
		planetest.Apply(t, w.usEast, serviceCluster(name, "us-east-1"))
		w.of(w.usEast).await(t, "us-east-1 of "+name+" is Bound in us-east", regionClaims, name, "us-east-1",
			isObserved, has("Bound", "phase"), has("us-east", "holder", "peer"))
	}
	w.kubectl["eu-west"].must(t, "apply", "--validate=strict", "-f", filepath.Join(manifests, "regionclaims.yaml"))
	for _, key := range [][2]string{{"loodse", "eu-west-1"}, {"loodse", "eu-west-2"}, {"not-loodse", "eu-west-1"}} {
		planetest.Apply(t, w.euWest, serviceCluster(key[0], key[1]))
	}

	for _, want := range printed(t, "regionclaims.yaml") {
		w.of(w.euWest).await(t, "RegionClaim "+want.GetName()+" is as it is printed", regionClaims, want.GetNamespace(), want.GetName(),
			isObserved, has(phaseOf(want), "phase"))
	}
	w.of(w.euWest).await(t, "the Conflict names the holder", regionClaims, "loodse", "us-east-1",
		has("us-east", "holder", "peer"), hasCondition("Bound", "False", "HeldElsewhere"))
	for _, want := range printed(t, "peers.yaml") {
		regions, _, err := unstructured.NestedSlice(want.Object, "status", "regions")
		require.NoError(t, err)
		w.of(w.central).await(t, "Peer "+want.GetName()+" is as it is printed", peers, "", want.GetName(),
			isObserved, has(phaseOf(want), "phase"), hasCondition("Ready", "True", ""), hasRegions(regions))
	}
	w.of(w.central).await(t, "the version is reported", peers, "", "local", has("v0.2.0", "kubeCarrierVersion", "version"))
	w.of(w.euWest).await(t, "a ServiceCluster is open", serviceClusters, "loodse", "eu-west-1",
		has("Ready", "phase"), hasCondition("RegionBound", "True", ""))

	t.Run("tables", func(t *testing.T) { w.tables(t) })
	t.Run("a ServiceCluster waits for its region", func(t *testing.T) { w.waits(t) })
	t.Run("local comes back", func(t *testing.T) {
		before := w.of(w.central).get(t, peers, "", "local").GetUID()
		central.must(t, "delete", "peer", "local", "--wait=false")
		w.of(w.central).await(t, "it is another one, and Ready", peers, "", "local", isObserved, has("Ready", "phase"),
			func(obj *unstructured.Unstructured) error {
				if obj.GetUID() == before {
					return errors.New("it is the deleted one")
				}
				return nil
			})
	})
}

// printed returns the objects of a manifest, with their statuses.
func printed(t *testing.T, file string) []*unstructured.Unstructured {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(manifests, file))
	require.NoError(t, err)
	var objects []*unstructured.Unstructured
	for document := range strings.SplitSeq(string(content), "\n---\n") {
		obj := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal([]byte(document), &obj.Object))
		objects = append(objects, obj)
	}
	require.Greater(t, len(objects), 1)
	return objects
}

// hasRegions expects a Peer to list exactly these regions, in this order.
func hasRegions(regions []any) expectation {
	return func(obj *unstructured.Unstructured) error {
		if len(regions) > 0 {
			return has(regions, "regions")(obj)
		}
		found, _, err := unstructured.NestedSlice(obj.Object, "status", "regions")
		if err == nil && len(found) > 0 {
			err = fmt.Errorf("regions are %v, want none", found)
		}
		return err
	}
}

// tables checks the output of kubectl get.
func (w *world) tables(t *testing.T) {
	for _, tc := range []struct {
		plane   string
		args    []string
		columns []string
		rows    []string // as regular expressions
	}{
		{"central", []string{"peers"}, []string{"NAME", "STATUS", "VERSION", "AGE"},
			[]string{`local +Ready +v0\.2\.0 `, `eu-west +Ready +v1\.\d+`, `us-east +Ready +v1\.\d+`, `ap-south +Ready +v1\.\d+`}},
		{"central", []string{"accounts", "-o", "wide"}, []string{"NAME", "STATUS", "ROLES", "NAMESPACE", "PRESENT", "PEERS"},
			[]string{`loodse +Ready .*\["Provider"\] +loodse .* 4 +4 `, `not-loodse +Ready .*\["Provider"\] +not-loodse .* 4 +4 `}},
		{"eu-west", []string{"regionclaims", "-n", "loodse"}, []string{"NAME", "STATUS", "HOLDER", "AGE"},
			[]string{`eu-west-1 +Bound +eu-west `, `eu-west-2 +Bound +eu-west `, `us-east-1 +Conflict +us-east `}},
		{"us-east", []string{"regionclaims", "-A"}, []string{"NAMESPACE", "NAME", "STATUS"},
			[]string{`loodse +us-east-1 +Bound +us-east `, `not-loodse +us-east-1 +Bound +us-east `}},
		{"eu-west", []string{"serviceclusters", "-n", "loodse"}, []string{"NAME", "STATUS", "STAGE", "TARGET", "AGE"},
			[]string{`eu-west-1 +Ready .*Configured +eu-west `, `eu-west-2 +Ready .*Configured +eu-west `}},
	} {
		planetest.Eventually(t, soon, strings.Join(tc.args, " ")+" in "+tc.plane, func(ctx context.Context) error {
			table, err := w.kubectl[tc.plane].run(ctx, append([]string{"get"}, tc.args...)...)
			if err != nil {
				return fmt.Errorf("%w: %s", err, table)
			}
			header := strings.Fields(strings.SplitN(table, "\n", 2)[0])
			for _, column := range tc.columns {
				if !slices.Contains(header, column) {
					return fmt.Errorf("there is no column %s in\n%s", column, table)
				}
			}
			for _, row := range tc.rows {
				if !regexp.MustCompile(`(?m)^` + row).MatchString(table) {
					return fmt.Errorf("there is no row %s in\n%s", row, table)
				}
			}
			return nil
		})
	}
}

// waits creates a ServiceCluster whose region is claimed in another peer. The ServiceCluster must
// be Pending until the test deletes this claim.
func (w *world) waits(t *testing.T) {
	planetest.Apply(t, w.apSouth, regionClaim("loodse", "moving"))
	w.awaitClaim(t, w.apSouth, "moving", "Bound")
	planetest.Apply(t, w.euWest, serviceCluster("loodse", "moving"))
	w.awaitClaim(t, w.euWest, "moving", "Conflict")
	w.of(w.euWest).await(t, "it is Pending", serviceClusters, "loodse", "moving",
		has("Pending", "phase"), hasCondition("RegionBound", "False", "RegionUnbound"))
	require.NoError(t, w.of(w.apSouth).Resource(regionClaims).Namespace("loodse").Delete(t.Context(), "moving", metav1.DeleteOptions{}))
	w.awaitClaim(t, w.euWest, "moving", "Bound")
	w.of(w.euWest).await(t, "it is Ready", serviceClusters, "loodse", "moving",
		has("Ready", "phase"), hasCondition("RegionBound", "True", ""))
}
