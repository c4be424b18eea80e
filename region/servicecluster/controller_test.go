// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package servicecluster

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

var errNoConnection = errors.New("connection refused")

func TestAServiceClusterBecomesReady(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var told []ReportEvent
		var probed atomic.Int32
		w.start(Options{Observer: &Observer{
			Reported: func(_ context.Context, e ReportEvent) { told = append(told, e) },
			Probed:   func(context.Context, ProbeEvent) { probed.Add(1) },
		}})
		w.secret("us", "kubeconfig", "good")
		w.apply("us", "a", "kubeconfig")
		passes(3 * time.Second)
		require.Equal(t, "- Unclaimed Pending", w.shows("us", "a"))

		w.commit("us", "a")
		passes(3 * time.Second)
		require.Equal(t, "- Pending Pending", w.shows("us", "a"), "no Arbiter runs")
		require.Zero(t, w.probe.count("good"), "nothing is probed before the region is bound")

		w.arbitrate()
		passes(10 * time.Second)
		require.Equal(t, "Ready Complete Answered", w.shows("us", "a"))
		c := w.stored("us", "a")
		require.Equal(t, version136, c.Status.KubernetesVersion)
		require.Equal(t, c.Generation, c.Status.ObservedGeneration)
		require.EqualValues(t, 1, probed.Load())
		last := told[len(told)-1]
		require.Equal(t, metav1.ConditionTrue, last.Ready)
		require.NotEqual(t, metav1.ConditionTrue, last.Before)
		require.Equal(t, c.UID, last.UID)
		require.Equal(t, "a.loodse", last.Region.String())
	})
}

func TestASteadyStateWritesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.arbitrate()
		w.start(Options{})
		w.secret("us", "kubeconfig", "good")
		w.apply("us", "a", "kubeconfig")
		w.commit("us", "a")
		passes(time.Minute)
		require.Equal(t, "Ready Complete Answered", w.shows("us", "a"))
		writes, probes := w.statusWrites("us"), w.probe.count("good")
		passes(time.Hour)
		require.Equal(t, writes, w.statusWrites("us"))
		require.Equal(t, 120, w.probe.count("good")-probes)
	})
}

func TestGuardsAndReservationsAreLeftAlone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.arbitrate()
		w.start(Options{})
		w.guard("eu", "us", "a")
		passes(time.Minute)
		require.Equal(t, "- - -", w.shows("eu", "a"))
		require.Zero(t, w.statusWrites("eu"))
	})
}

func TestAnUnreachableClusterIsNotReady(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.arbitrate()
		w.start(Options{})
		w.secret("us", "kubeconfig", "good")
		w.apply("us", "a", "kubeconfig")
		w.commit("us", "a")
		passes(35 * time.Second)
		require.Equal(t, "Ready Complete Answered", w.shows("us", "a"))

		w.probe.set("good", errNoConnection)
		before := w.probe.count("good")
		for w.probe.count("good") < before+2 {
			passes(500 * time.Millisecond)
		}
		require.Equal(t, "Ready Complete Answered", w.shows("us", "a"), "two failures do not count")
		passes(5 * time.Second)
		require.Equal(t, "NotReady Unreachable Unreachable", w.shows("us", "a"))
		require.Equal(t, version136, w.stored("us", "a").Status.KubernetesVersion)
		before = w.probe.count("good")
		passes(time.Hour)
		require.InDelta(t, 63, w.probe.count("good")-before, 4, "a dead cluster is probed once a minute")

		w.probe.set("good", nil)
		passes(time.Minute)
		require.Equal(t, "Ready Complete Answered", w.shows("us", "a"))
	})
}

func TestAKubeconfigThatIsNotAccepted(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.arbitrate()
		w.start(Options{})
		w.apply("us", "a", "absent")
		w.commit("us", "a")
		passes(10 * time.Second)
		require.Equal(t, "NotReady KubeconfigInvalid KubeconfigInvalid", w.shows("us", "a"))
		message := meta.FindStatusCondition(w.stored("us", "a").Status.Conditions, ready).Message
		require.Equal(t, "the kubeconfig is not accepted: the Secret absent does not exist: create it in this namespace", message)

		w.create(w.of("us"), "v1", "secrets", "Secret", account, "other", map[string]any{"stringData": map[string]any{"config": "x"}})
		w.edit("us", "a", func(obj *unstructured.Unstructured) error {
			return unstructured.SetNestedField(obj.Object, "other", "spec", "kubeconfigSecret", "name")
		})
		passes(time.Second)
		require.Contains(t, meta.FindStatusCondition(w.stored("us", "a").Status.Conditions, ready).Message, "the Secret other has no key kubeconfig")

		w.secret("us", "third", "good")
		w.edit("us", "a", func(obj *unstructured.Unstructured) error {
			return unstructured.SetNestedField(obj.Object, "third", "spec", "kubeconfigSecret", "name")
		})
		passes(time.Second)
		require.Equal(t, "Ready Complete Answered", w.shows("us", "a"), "a ServiceCluster that names another Secret is probed at once")
	})
}

func TestAnotherDescriptionIsNoReasonToDoubtTheCluster(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.arbitrate()
		w.start(Options{})
		w.secret("us", "kubeconfig", "good")
		w.apply("us", "a", "kubeconfig")
		w.commit("us", "a")
		passes(10 * time.Second)
		w.probe.set("good", errNoConnection)
		w.edit("us", "a", func(obj *unstructured.Unstructured) error {
			return unstructured.SetNestedField(obj.Object, "Frankfurt", "spec", "metadata", "displayName")
		})
		passes(time.Second)
		require.Equal(t, "Ready Complete Answered", w.shows("us", "a"))
		require.Equal(t, w.stored("us", "a").Generation, w.stored("us", "a").Status.ObservedGeneration)
	})
}

// TestALostRegionEndsTheProbes gives the region to another peer.
func TestALostRegionEndsTheProbes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.arbitrate()
		w.start(Options{})
		w.secret("us", "kubeconfig", "good")
		w.apply("us", "a", "kubeconfig")
		w.commit("us", "a")
		passes(10 * time.Second)
		require.Equal(t, "Ready Complete Answered", w.shows("us", "a"))
		w.create(w.of("eu"), "kubecarrier.io/v1alpha1", "regionclaims", "RegionClaim", account, "a", map[string]any{"spec": map[string]any{}})
		passes(3 * time.Second)
		claims := clusters.GroupVersion().WithResource("regionclaims")
		require.NoError(t, w.of("us").Resource(claims).Namespace(account).Delete(t.Context(), "a", metav1.DeleteOptions{}))
		passes(3 * time.Second)
		require.Equal(t, "Pending RegionUnbound Pending", w.shows("us", "a"))
		probes, writes := w.probe.count("good"), w.statusWrites("us")
		passes(time.Hour)
		require.Equal(t, probes, w.probe.count("good"))
		require.Equal(t, writes, w.statusWrites("us"), "the Arbiter and the Controller do not write in turns")

		require.NoError(t, w.of("eu").Resource(claims).Namespace(account).Delete(t.Context(), "a", metav1.DeleteOptions{}))
		passes(time.Minute)
		require.Equal(t, "Ready Complete Answered", w.shows("us", "a"))
	})
}

func TestANameIsNotFreeWhileAPeerIsUnreachable(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start(Options{})
		w.apply("us", "a", "kubeconfig")
		w.ring.Partition("eu", true)
		passes(time.Minute)
		require.Equal(t, "- PeerUnreachable Pending", w.shows("us", "a"))
		w.ring.Partition("eu", false)
		passes(time.Minute)
		require.Equal(t, "- Unclaimed Pending", w.shows("us", "a"))
		w.guard("eu", "us", "a")
		passes(time.Second)
		require.Equal(t, "- Unclaimed Pending", w.shows("us", "a"), "a guard for this peer is part of its own adoption")
	})
}

func TestAHeldNameIsReported(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start(Options{})
		w.apply("us", "a", "kubeconfig")
		w.guard("eu", "ap", "a")
		passes(time.Second)
		require.Equal(t, "- Held Pending", w.shows("us", "a"))
		message := meta.FindStatusCondition(w.stored("us", "a").Status.Conditions, ready).Message
		for _, peer := range []string{"eu", "us", "ap"} {
			require.NotRegexp(t, `\b`+peer+`\b`, message, "tenants can read messages")
		}
		w.delete("eu", "a")
		passes(time.Second)
		require.Equal(t, "- Unclaimed Pending", w.shows("us", "a"))
	})
}

// ServiceClusters that were applied in several peers at once have one message.
func TestRivalsHaveOneMessage(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start(Options{})
		var wg sync.WaitGroup
		for _, p := range []region.PeerName{"eu", "us"} {
			wg.Go(func() { w.apply(p, "a", "kubeconfig") })
		}
		wg.Wait()
		passes(time.Second)
		claims := map[string]bool{}
		for _, p := range []region.PeerName{"eu", "us"} {
			require.Equal(t, "- Rivals Pending", w.shows(p, "a"))
			c := w.stored(p, "a")
			claims[meta.FindStatusCondition(c.Status.Conditions, claimed).Message] = true
			for message := range claims {
				require.Contains(t, message, c.UID)
				require.NotRegexp(t, `\b(eu|us|ap)\b`, message, "tenants can read messages")
			}
		}
		require.Len(t, claims, 1)
		writes := w.statusWrites("eu")
		passes(time.Hour)
		require.Equal(t, writes, w.statusWrites("eu"))
		w.delete("eu", "a")
		passes(time.Second)
		require.Equal(t, "- Unclaimed Pending", w.shows("us", "a"))
	})
}

func TestADeletedServiceClusterIsTerminating(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.arbitrate()
		w.start(Options{})
		w.secret("us", "kubeconfig", "good")
		w.apply("us", "a", "kubeconfig")
		w.commit("us", "a")
		w.edit("us", "a", func(obj *unstructured.Unstructured) error {
			obj.SetFinalizers([]string{"example.com/wait"})
			return nil
		})
		passes(10 * time.Second)
		w.delete("us", "a")
		passes(time.Second)
		require.Equal(t, "Terminating Removing Answered", w.shows("us", "a"))
		probes := w.probe.count("good")
		passes(time.Hour)
		require.Equal(t, probes, w.probe.count("good"))
	})
}

// TestDeadClustersOfOneAccountDelayNobody has 60 clusters that never answer in one account, and one cluster in another.
func TestDeadClustersOfOneAccountDelayNobody(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.arbitrate()
		w.probe.slow["dead"] = time.Hour
		w.secret("us", "dead", "dead")
		for i := range 60 {
			w.apply("us", fmt.Sprint("dead-", i), "dead")
			w.commit("us", fmt.Sprint("dead-", i))
		}
		passes(time.Minute)
		w.start(Options{Workers: 8, PerAccount: 3})
		passes(time.Minute)
		require.Equal(t, 3, w.probe.mostAtOnce())
		other := "other"
		w.create(w.of("us"), "v1", "namespaces", "Namespace", "", other, nil)
		w.create(w.of("us"), "v1", "secrets", "Secret", other, "kubeconfig", map[string]any{"stringData": map[string]any{SecretKey: "good"}})
		w.create(w.of("us"), "kubecarrier.io/v1alpha1", "serviceclusters", "ServiceCluster", other, "a",
			map[string]any{"spec": map[string]any{"kubeconfigSecret": map[string]any{"name": "kubeconfig"}}})
		passes(time.Second) // the Arbiter has made a claim and written the status
		obj, err := w.of("us").Resource(clusters).Namespace(other).Get(t.Context(), "a", metav1.GetOptions{})
		require.NoError(t, err)
		require.NoError(t, unstructured.SetNestedMap(obj.Object, fanoutOf("us", "us", "Primary", "Configured"), "spec", "fanout"))
		_, err = w.of("us").Resource(clusters).Namespace(other).Update(t.Context(), obj, metav1.UpdateOptions{})
		require.NoError(t, err)
		passes(5 * time.Second)
		require.Equal(t, 1, w.probe.count("good"))
		passes(30 * time.Minute)
		for i := range 60 {
			require.Equal(t, "NotReady Unreachable Unreachable", w.shows("us", fmt.Sprint("dead-", i)))
		}
		require.Greater(t, w.probe.count("good"), 50)
	})
}

func TestAnUnreachablePeerStopsOnlyItsOwnProbes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.arbitrate()
		w.start(Options{})
		w.secret("us", "kubeconfig", "us")
		w.secret("eu", "kubeconfig", "eu")
		w.apply("us", "a", "kubeconfig")
		w.commit("us", "a")
		w.apply("eu", "b", "kubeconfig")
		w.commit("eu", "b")
		passes(time.Minute)
		require.Equal(t, "Ready Complete Answered", w.shows("us", "a"))
		require.Equal(t, "Ready Complete Answered", w.shows("eu", "b"))
		w.ring.Partition("us", true)
		passes(2 * time.Minute)
		us, eu := w.probe.count("us"), w.probe.count("eu")
		passes(time.Hour)
		require.Equal(t, us, w.probe.count("us"))
		require.Equal(t, 120, w.probe.count("eu")-eu)
		require.Equal(t, "Ready Complete Answered", w.shows("us", "a"))
		w.ring.Partition("us", false)
		passes(time.Minute)
		require.Greater(t, w.probe.count("us"), us)
	})
}

// TestASecretThatCannotBeReadSaysNothingAboutTheCluster refuses the right to read Secrets.
func TestASecretThatCannotBeReadSaysNothingAboutTheCluster(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.arbitrate()
		w.start(Options{})
		w.secret("us", "kubeconfig", "good")
		w.apply("us", "a", "kubeconfig")
		w.commit("us", "a")
		passes(time.Minute)
		w.ring.Server("us").Inject(regiontest.Fault{Verb: "get", Resource: secrets.GroupResource(), Times: -1, Do: regiontest.Refuse(403)})
		passes(10 * time.Minute)
		require.Equal(t, "Ready Complete Answered", w.shows("us", "a"))
	})
}

func TestARestartKeepsTheStatus(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.arbitrate()
		stop := w.start(Options{})
		w.secret("us", "kubeconfig", "good")
		w.apply("us", "a", "kubeconfig")
		w.commit("us", "a")
		passes(time.Minute)
		stop()
		w.probe.slow["good"] = 5 * time.Second
		writes := w.statusWrites("us")
		w.start(Options{})
		passes(time.Minute)
		require.Equal(t, "Ready Complete Answered", w.shows("us", "a"))
		require.Equal(t, writes, w.statusWrites("us"))
	})
}

// TestTwoControllersAgree runs two replicas that own the same ServiceCluster.
func TestTwoControllersAgree(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.arbitrate()
		w.start(Options{})
		w.start(Options{})
		w.secret("us", "kubeconfig", "good")
		w.apply("us", "a", "kubeconfig")
		w.commit("us", "a")
		passes(time.Minute)
		writes := w.statusWrites("us")
		passes(time.Hour)
		require.Equal(t, writes, w.statusWrites("us"))
		w.probe.set("good", errNoConnection)
		passes(5 * time.Minute)
		require.Equal(t, "NotReady Unreachable Unreachable", w.shows("us", "a"))
		require.LessOrEqual(t, w.statusWrites("us")-writes, 4)
	})
}

// TestAnotherWriterIsReplacedLessAndLess replaces the conditions whenever they are written.
func TestAnotherWriterIsReplacedLessAndLess(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.arbitrate()
		w.start(Options{})
		w.secret("us", "kubeconfig", "good")
		w.apply("us", "a", "kubeconfig")
		w.commit("us", "a")
		passes(time.Minute)
		before := w.statusWrites("us")
		const forged = `{"apiVersion":"kubecarrier.io/v1alpha1","kind":"ServiceCluster","status":{"kubernetesVersion":{"gitVersion":"v0"}}}`
		replaced := 0
		for range 3600 {
			if w.stored("us", "a").Status.KubernetesVersion.GitVersion != "v0" {
				replaced++
				_, err := w.of("us").Resource(clusters).Namespace(account).Patch(t.Context(), "a", types.ApplyPatchType, []byte(forged),
					metav1.PatchOptions{FieldManager: "rival", Force: new(true)}, "status")
				require.NoError(t, err)
			}
			passes(time.Second)
		}
		require.Greater(t, replaced, 5)
		require.Less(t, w.statusWrites("us")-before-replaced, 30)
	})
}

// toggled is a Shard that owns nothing until own is called.
type toggled struct {
	owned   atomic.Bool
	changed chan struct{}
}

func (s *toggled) own() {
	s.owned.Store(true)
	close(s.changed)
}

func (s *toggled) Owns(string) bool { return s.owned.Load() }

func (s *toggled) Watch(ctx context.Context) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		select {
		case <-s.changed:
			yield(1)
		case <-ctx.Done():
		}
	}
}

func TestAShardIsLeftToItsOwner(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.arbitrate()
		shard := &toggled{changed: make(chan struct{})}
		w.start(Options{Shard: shard})
		w.secret("us", "kubeconfig", "good")
		w.apply("us", "a", "kubeconfig")
		w.commit("us", "a")
		passes(time.Minute)
		require.Zero(t, w.probe.count("good"))
		require.Equal(t, "Ready - -", w.shows("us", "a"))
		shard.own()
		passes(time.Second)
		require.Equal(t, "Ready Complete Answered", w.shows("us", "a"))
	})
}

// TestAStatusReachesOnlyTheServiceClusterThatWasProbed replaces the ServiceCluster during a probe.
func TestAStatusReachesOnlyTheServiceClusterThatWasProbed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.arbitrate()
		w.probe.slow["good"] = 5 * time.Second
		var readySince atomic.Pointer[types.UID]
		w.start(Options{Observer: &Observer{Reported: func(_ context.Context, e ReportEvent) {
			if e.Ready == metav1.ConditionTrue {
				readySince.Store(&e.UID)
			}
		}}})
		w.secret("us", "kubeconfig", "good")
		w.apply("us", "a", "kubeconfig")
		w.commit("us", "a")
		for w.probe.count("good") == 0 {
			passes(100 * time.Millisecond)
		}
		w.delete("us", "a")
		w.apply("us", "a", "kubeconfig")
		passes(time.Minute)
		require.Nil(t, readySince.Load())
		require.Contains(t, w.shows("us", "a"), "Unclaimed Pending")
	})
}
