// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/wal/waltest"
)

const vaultClaim = "vault.example.com/claim"

// vaultKind is a third party's kind that exists once, whose CRD requires a field, has a default
// and has no field for claims.
func vaultKind() fanout.Kind {
	return fanout.Kind{
		Resource:   schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "vaults"},
		Kind:       "Vault",
		Namespaced: true,
		Mode:       fanout.Once,
		Claim:      fanout.InAnnotation(vaultClaim),
		Inert:      func(*unstructured.Unstructured) error { return nil },
		Guard: func(guard *unstructured.Unstructured) error {
			return unstructured.SetNestedField(guard.Object, "nobody", "spec", "owner")
		},
	}
}

// bareKind is vaultKind with guards that lack a field which its CRD requires.
func bareKind() fanout.Kind {
	k := vaultKind()
	k.Guard = func(guard *unstructured.Unstructured) error {
		return unstructured.SetNestedField(guard.Object, int64(1), "spec", "size")
	}
	return k
}

// vaultCRD requires spec and spec.owner if strict, and fills in spec.size.
func vaultCRD(strict bool) *apiextensionsv1.CustomResourceDefinition {
	size := apiextensionsv1.JSON{Raw: []byte(`3`)}
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	spec := apiextensionsv1.JSONSchemaProps{
		Type: "object",
		Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"owner": text, "password": text,
			"size": {Type: "integer", Default: &size},
		},
	}
	var required []string
	if strict {
		required, spec.Required = []string{"spec"}, []string{"owner"}
	}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "vaults.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "vaults", Kind: "Vault"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", Required: required, Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": spec},
				}},
			}},
		},
	}
}

func newVault(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Vault",
		"metadata": map[string]any{
			"namespace": "default", "name": name,
			"labels":      map[string]any{"example.com/hint": "hunter2"},
			"annotations": map[string]any{"example.com/note": "hunter2"},
		},
		"spec": map[string]any{"owner": "alice", "password": "hunter2"},
	}}
}

func vaultsIn(t testing.TB, r *regiontest.Ring, peer region.PeerName) dynamic.ResourceInterface {
	t.Helper()
	conn, err := r.Conn(peer)
	require.NoError(t, err)
	return conn.Dynamic().Resource(vaultKind().Resource).Namespace("default")
}

// requireNoSecret fails the test if obj has a part of the payload.
func requireNoSecret(t testing.TB, obj *unstructured.Unstructured) {
	t.Helper()
	text, err := json.Marshal(obj)
	require.NoError(t, err)
	require.NotContains(t, string(text), "hunter2")
	require.NotContains(t, string(text), "alice")
}

func written(r *regiontest.Ring) (n int) {
	for _, peer := range peers {
		for _, request := range r.Server(peer).Requests() {
			if request.Method != http.MethodGet && !request.DryRun {
				n++
			}
		}
	}
	return n
}

func dryRuns(r *regiontest.Ring) (n int) {
	for _, peer := range peers {
		for _, request := range r.Server(peer).Requests() {
			if request.DryRun {
				n++
			}
		}
	}
	return n
}

// A guard carries its claim and the fields that Kind.Guard fills in, and nothing else. A guard that
// is a reservation carries the same, although Inert of this kind keeps the payload of
// reservations. A sweep does not rewrite the guard, although the API server fills in a default.
func TestAGuardCarriesNoPayload(t *testing.T) {
	t.Parallel()
	r := newRing(t)
	require.NoError(t, r.AddCRDs(vaultCRD(true)))
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{Kinds: []fanout.Kind{vaultKind()}})
	_, err := c.Add(t.Context(), newVault("db"), fanout.AddOptions{Target: "us-east", Durable: true})
	require.NoError(t, err)
	password, _, _ := unstructured.NestedString(read(t, vaultsIn(t, r, "us-east"), "db").Object, "spec", "password")
	require.Equal(t, "hunter2", password)
	for _, peer := range []region.PeerName{"ap-south", "eu-west"} {
		guard := read(t, vaultsIn(t, r, peer), "db")
		requireNoSecret(t, guard)
		require.EqualValues(t, 1, guard.GetGeneration())
		require.Equal(t, map[string]any{"owner": "nobody", "size": int64(3)}, guard.Object["spec"])
	}
	before := written(r)
	_, err = c.Sweep(t.Context())
	require.NoError(t, err)
	require.Equal(t, before, written(r))
	requireClean(t, c)
}

// releasedBefore adds the payload, and a last-applied annotation with it, to the guards, as an
// earlier release did for kinds with Inert.
func releasedBefore(t *testing.T, r *regiontest.Ring, primary region.PeerName, name string) {
	t.Helper()
	for _, peer := range peers {
		if peer == primary {
			continue
		}
		guard, vault := read(t, vaultsIn(t, r, peer), name), newVault(name)
		guard.Object["spec"] = vault.Object["spec"]
		guard.SetLabels(vault.GetLabels())
		annotations := vault.GetAnnotations()
		annotations[vaultClaim] = guard.GetAnnotations()[vaultClaim]
		annotations["kubectl.kubernetes.io/last-applied-configuration"] = `{"spec":{"password":"hunter2"}}`
		guard.SetAnnotations(annotations)
		_, err := vaultsIn(t, r, peer).Update(t.Context(), guard, metav1.UpdateOptions{FieldManager: "atoll-fanout"})
		require.NoError(t, err)
	}
}

// A sweep removes the payload once from the guards that an earlier release wrote, and keeps their
// claims, even while the primary's peer is unreachable.
func TestASweepScrubsGuards(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]bool{"all answer": false, "the primary's peer is away": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRing(t)
			require.NoError(t, r.AddCRDs(vaultCRD(true)))
			c := coordinator(t, r, waltest.NewMemory(), fanout.Options{Kinds: []fanout.Kind{vaultKind()}})
			_, err := c.Add(t.Context(), newVault("db"), fanout.AddOptions{Target: "us-east", Durable: true})
			require.NoError(t, err)
			releasedBefore(t, r, "us-east", "db")
			claim := read(t, vaultsIn(t, r, "eu-west"), "db").GetAnnotations()[vaultClaim]
			report, err := c.Audit(t.Context(), false)
			require.NoError(t, err)
			require.Equal(t, []string{"I12", "I12"}, invariants(report.Violations))

			r.Partition("us-east", away)
			before := written(r)
			_, err = c.Sweep(t.Context())
			require.Equal(t, away, err != nil, "%v", err)
			require.Equal(t, before+2, written(r))
			for _, peer := range []region.PeerName{"ap-south", "eu-west"} {
				guard := read(t, vaultsIn(t, r, peer), "db")
				requireNoSecret(t, guard)
				require.Equal(t, map[string]any{"owner": "nobody", "size": int64(3)}, guard.Object["spec"])
			}
			require.Equal(t, claim, read(t, vaultsIn(t, r, "eu-west"), "db").GetAnnotations()[vaultClaim])
			before = written(r)
			_, _ = c.Sweep(t.Context())
			require.Equal(t, before, written(r), "at rest nothing is written")
			r.Partition("us-east", false)
			requireClean(t, c)
		})
	}
}

// If an API server rejects the removal of a guard's payload, the error has the remedy, and the
// guard stays.
func TestAScrubThatIsRefusedSaysWhatToDo(t *testing.T) {
	t.Parallel()
	r := newRing(t)
	require.NoError(t, r.AddCRDs(vaultCRD(true)))
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{Kinds: []fanout.Kind{vaultKind()}})
	_, err := c.Add(t.Context(), newVault("db"), fanout.AddOptions{Target: "us-east", Durable: true})
	require.NoError(t, err)
	releasedBefore(t, r, "us-east", "db")
	r.Server("eu-west").Inject(regiontest.Fault{Verb: "update", Resource: vaultKind().Resource.GroupResource(), Do: regiontest.Refuse(http.StatusUnprocessableEntity)})
	_, err = c.Sweep(t.Context())
	require.ErrorContains(t, err, "peer eu-west")
	require.ErrorContains(t, err, "delete the guard: the next sweep makes it anew")
	require.NoError(t, vaultsIn(t, r, "eu-west").Delete(t.Context(), "db", metav1.DeleteOptions{}))
	_, err = c.Sweep(t.Context())
	require.NoError(t, err)
	requireNoSecret(t, read(t, vaultsIn(t, r, "eu-west"), "db"))
	requireClean(t, c)
}

// Add, Adopt and Plan detect a guard that lacks required fields before anything is written.
func TestAGuardThatAPeerRefusesIsFoundBeforeTheFirstWrite(t *testing.T) {
	t.Parallel()
	r := newRing(t)
	require.NoError(t, r.AddCRDs(vaultCRD(true)))
	log := waltest.NewMemory()
	c := coordinator(t, r, log, fanout.Options{Kinds: []fanout.Kind{bareKind()}})
	apply(t, vaultsIn(t, r, "us-east"), newVault("applied"))
	for name, run := range map[string]func() error{
		"add": func() error {
			_, err := c.Add(t.Context(), newVault("db"), fanout.AddOptions{Target: "us-east"})
			return err
		},
		"adopt": func() error {
			_, err := c.Adopt(t.Context(), "us-east", bareKind().GroupKind(), key("default", "applied"))
			return err
		},
		"plan": func() error {
			_, err := c.Plan(t.Context(), newVault("db"), fanout.AddOptions{Target: "us-east"})
			return err
		},
	} {
		before := written(r)
		err := run()
		refused, ok := errors.AsType[*fanout.GuardError](err)
		require.True(t, ok, "%s: %v", name, err)
		require.Equal(t, []string{"spec.owner"}, refused.Fields)
		require.ErrorIs(t, err, fanout.ErrAborted)
		require.True(t, apierrors.IsInvalid(refused.Err))
		if name == "plan" { // Plan asks both peers at once, and reports the first answer
			require.Regexp(t, "peer (ap-south|eu-west): ", err.Error())
		} else {
			require.ErrorContains(t, err, "peer ap-south: ")
		}
		require.ErrorContains(t, err, "spec.owner: Required value")
		require.ErrorContains(t, err, "set Kind.Guard to fill spec.owner")
		require.Equal(t, before, written(r), name)
		requireSettled(t, log)
	}
	none := bareKind()
	none.Guard = nil
	_, err := coordinator(t, r, log, fanout.Options{Kinds: []fanout.Kind{none}}).Add(t.Context(), newVault("db"), fanout.AddOptions{Target: "us-east"})
	require.ErrorContains(t, err, "set Kind.Guard to fill spec")
}

// Each peer that accepts a guard gets one dry run; later adds send none. If the CRD changes,
// the next guard is rejected, and from then on the dry run comes before the first write again.
func TestGuardsAreAskedForOnce(t *testing.T) {
	t.Parallel()
	r := newRing(t)
	require.NoError(t, r.AddCRDs(vaultCRD(false)))
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{Kinds: []fanout.Kind{bareKind()}})
	for i, name := range []string{"a", "b", "c"} {
		_, err := c.Add(t.Context(), newVault(name), fanout.AddOptions{Target: "us-east", Durable: true})
		require.NoError(t, err)
		require.Equal(t, 2, dryRuns(r), "add %d", i)
	}
	for _, peer := range peers {
		require.NoError(t, r.Server(peer).AddCRD(vaultCRD(true)))
	}
	_, err := c.Add(t.Context(), newVault("d"), fanout.AddOptions{Target: "us-east"})
	_, refused := errors.AsType[*fanout.GuardError](err)
	require.True(t, refused, "%v", err)
	before := written(r)
	_, err = c.Add(t.Context(), newVault("d"), fanout.AddOptions{Target: "us-east"})
	require.ErrorContains(t, err, "set Kind.Guard to fill spec.owner")
	require.Equal(t, before, written(r))
}

// A dry run without a verdict on the guard blocks no add. The verdict is missing if a peer rejects
// dry runs, answers with an error, or closes the connection.
func TestADryRunThatCannotBeAskedBlocksNoAdd(t *testing.T) {
	t.Parallel()
	r := newRing(t)
	require.NoError(t, r.AddCRDs(vaultCRD(true)))
	for name, do := range map[string]regiontest.Action{
		"bad-request": regiontest.Refuse(http.StatusBadRequest),
		"forbidden":   regiontest.Refuse(http.StatusForbidden),
		"error":       regiontest.Refuse(http.StatusInternalServerError, time.Hour),
		"connection":  regiontest.DropReply(),
	} {
		c := coordinator(t, r, waltest.NewMemory(), fanout.Options{Kinds: []fanout.Kind{vaultKind()}})
		r.Server("ap-south").Inject(regiontest.Fault{Verb: "create", Resource: vaultKind().Resource.GroupResource(), Do: do})
		op, err := c.Add(t.Context(), newVault(name), fanout.AddOptions{Target: "us-east"})
		require.NoError(t, err)
		require.Equal(t, fanout.Done, op.State)
	}
}

// If the deadline of an add passes in the dry run, the error names the peer for which the add
// waited. An add with more time continues after two seconds without an answer to the dry run.
func TestADryRunThatHangsIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRing(t)
		require.NoError(t, r.AddCRDs(vaultCRD(true)))
		c := coordinator(t, r, waltest.NewMemory(), fanout.Options{Kinds: []fanout.Kind{vaultKind()}})
		r.Server("ap-south").Inject(regiontest.Fault{Verb: "create", Do: regiontest.Hang()})
		_, err := c.Add(within(t, time.Second), newVault("db"), fanout.AddOptions{Target: "us-east"})
		require.ErrorIs(t, err, fanout.ErrAborted)
		require.ErrorContains(t, err, "it waited for dry run of the guard: 1 of 3 peers failed: peer ap-south: no answer in time")

		r.Server("ap-south").Inject(regiontest.Fault{Verb: "create", Do: regiontest.Hang()})
		begun := time.Now()
		_, err = c.Add(within(t, time.Minute), newVault("db"), fanout.AddOptions{Target: "us-east"})
		require.NoError(t, err)
		require.Equal(t, 2*time.Second, time.Since(begun), "the dry run has its own deadline")
	})
}

func TestReplicasHaveNoGuard(t *testing.T) {
	k := vaultKind()
	k.Mode = fanout.Everywhere
	_, err := fanout.New(newRing(t), waltest.NewMemory(), fanout.Options{Kinds: []fanout.Kind{k}})
	require.ErrorContains(t, err, "leave Guard nil")
}
