// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/syncer"
)

const (
	withoutOrigin = `{"metadata":{"annotations":{"syncer.atoll.dev/origin":null}}}`
	withoutUID    = `{"metadata":{"annotations":{"syncer.atoll.dev/uid":null}}}`
	wrongOrigin   = `{"metadata":{"annotations":{"syncer.atoll.dev/origin":"default/other"}}}`
	wrongUID      = `{"metadata":{"annotations":{"syncer.atoll.dev/uid":"another"}}}`
	withoutMarks  = `{"metadata":{"annotations":null}}`
	withoutLabel  = `{"metadata":{"annotations":{"syncer.atoll.dev/origin":null},"labels":{"syncer.atoll.dev/owner":null}}}`
)

// losses are patches by which another client removes or changes marks.
var losses = []string{withoutOrigin, withoutUID, wrongOrigin, wrongUID, withoutMarks, withoutLabel}

func nth(i int) string { return fmt.Sprintf("c-%03d", i) }

const volume = "{apiVersion: v1, kind: PersistentVolume, metadata: {name: v}, spec: {capacity: {storage: 1Gi}}}"

// If another client removes or changes the marks of a downstream object, the syncer restores the marks and does not
// recreate the object.
func TestLostMarksComeBack(t *testing.T) {
	for _, running := range []bool{true, false} {
		t.Run(fmt.Sprintf("running=%t", running), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				p := newPair(t, syncer.Options{})
				p.up.numbered(len(losses))
				p.rest()
				var before []*unstructured.Unstructured
				for i := range losses {
					before = append(before, p.down.get(configMaps, nth(i)))
				}
				if !running {
					p.stop()
				}
				for i, patch := range losses {
					p.down.patch(configMaps, nth(i), patch)
				}
				if !running {
					p.start(syncer.Options{})
				}
				p.rest()
				for i, patch := range losses {
					after := p.down.get(configMaps, nth(i))
					require.Equal(t, before[i].GetUID(), after.GetUID(), patch)
					require.Equal(t, before[i].GetLabels(), after.GetLabels(), patch)
					require.Equal(t, before[i].GetAnnotations(), after.GetAnnotations(), patch)
				}
				require.Empty(t, p.problems())
				p.reset()
				time.Sleep(time.Hour)
				require.Empty(t, append(p.up.writes(), p.down.writes()...))
			})
		})
	}
}

// If an origin is deleted while the marks of its downstream object are lost, the downstream object is deleted as well.
func TestLostMarksAndDeletedOrigin(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		p.up.numbered(len(losses))
		p.rest()
		p.stop()
		for i, patch := range losses {
			p.down.patch(configMaps, nth(i), patch)
			p.up.delete(configMaps, nth(i))
		}
		p.start(syncer.Options{})
		p.rest()
		require.Zero(t, p.down.count())
		require.Zero(t, p.up.count())
		require.Empty(t, p.problems())
	})
}

// If an origin disappears without evidence of a deletion, and the marks of its downstream object are lost, the
// downstream object stays until a person releases it.
func TestLostMarksOfAnOrphan(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		p.up.create(configMaps, a)
		p.rest()
		p.stop()
		p.down.patch(configMaps, "a", withoutMarks)
		p.up.patch(configMaps, "a", `{"metadata":{"finalizers":null}}`)
		p.up.delete(configMaps, "a")
		p.start(syncer.Options{})
		p.rest()
		require.NotNil(t, p.down.get(configMaps, "a"))
		require.Equal(t, []string{"configmaps default/a OriginGone"}, p.problems())
		require.Equal(t, 1, p.Release())
		p.rest()
		require.Nil(t, p.down.get(configMaps, "a"))
		require.Empty(t, p.problems())
	})
}

// If the marks of a downstream object do not show its origin, the syncer neither writes nor deletes the object. It
// reports the remedy.
func TestUnknownOriginIsReported(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		p.up.create(configMaps, a)
		p.rest()
		p.stop()
		stripped := p.down.patch(configMaps, "a", withoutMarks)
		p.up.patch(configMaps, "a", `{"metadata":{"finalizers":null}}`)
		p.up.delete(configMaps, "a")
		replaced := p.up.create(configMaps, a)
		p.start(syncer.Options{})
		p.rest()
		require.Equal(t, stripped.GetResourceVersion(), p.down.get(configMaps, "a").GetResourceVersion())
		require.Equal(t, []string{"configmaps default/a Collision"}, p.problems())
		for _, s := range p.Status().Types {
			for _, problem := range s.Problems {
				require.Contains(t, problem.Message, "syncer.atoll.dev/origin=default/a")
				require.Contains(t, problem.Message, "syncer.atoll.dev/uid="+string(replaced.GetUID()))
			}
		}
		p.reset()
		time.Sleep(time.Hour)
		require.Empty(t, p.down.writes())

		p.down.patch(configMaps, "a", fmt.Sprintf(`{"metadata":{"annotations":{"syncer.atoll.dev/origin":"default/a","syncer.atoll.dev/uid":%q}}}`, replaced.GetUID()))
		p.rest()
		require.Empty(t, p.problems())
		require.Equal(t, stripped.GetUID(), p.down.get(configMaps, "a").GetUID())
	})
}

// A person copies a downstream object under another name, and keeps, removes or changes the marks in its annotations.
// The syncer reports the copy as foreign, and neither writes nor deletes it.
func TestMarksThatAnotherClientWrote(t *testing.T) {
	for name, change := range map[string]func(marks map[string]string){
		"with all marks":     func(map[string]string) {},
		"without an origin":  func(marks map[string]string) { delete(marks, "syncer.atoll.dev/origin") },
		"without any marks":  func(marks map[string]string) { clear(marks) },
		"of another cluster": func(marks map[string]string) { marks["syncer.atoll.dev/uid"] = "another" },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				p := newPair(t, syncer.Options{Permit: []syncer.Power{syncer.PermitPersistentVolumes}})
				p.up.create(configMaps, a)
				p.up.create(volumes, volume)
				p.rest()
				for _, one := range []struct {
					gvr                        schema.GroupVersionResource
					origin, manifest, problems string
				}{{configMaps, "a", a, "configmaps default/theirs Foreign"}, {volumes, "v", volume, "persistentvolumes /theirs Foreign"}} {
					gvr, origin := one.gvr, one.origin
					theirs := p.down.get(gvr, origin)
					theirs.SetName("theirs")
					theirs.SetUID("")
					theirs.SetResourceVersion("")
					theirs.SetManagedFields(nil)
					marks := theirs.GetAnnotations()
					change(marks)
					theirs.SetAnnotations(marks)
					made, err := p.down.of(gvr).Create(t.Context(), theirs, metav1.CreateOptions{FieldManager: "kubectl"})
					require.NoError(t, err)
					for _, upstream := range []bool{false, true} {
						if upstream {
							p.up.create(gvr, strings.Replace(one.manifest, "name: "+origin, "name: theirs", 1))
						}
						p.rest()
						after := p.down.get(gvr, "theirs")
						require.NotNil(t, after, "the second object stays")
						require.Equal(t, made.GetResourceVersion(), after.GetResourceVersion())
						require.Contains(t, p.problems(), one.problems, "upstream=%t", upstream)
					}
				}
			})
		})
	}
}

// If a client keeps removing the marks, the syncer restores them five times, and then reports a fight.
func TestMarksThatAreRemovedAgainAndAgain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		p.up.create(configMaps, a)
		p.rest()
		p.reset()
		for range 20 {
			p.down.patch(configMaps, "a", withoutMarks)
			p.settle()
		}
		require.Equal(t, 5, p.down.writesBy("atoll-syncer"))
		require.Equal(t, []string{"configmaps default/a Fight"}, p.problems())
		p.up.delete(configMaps, "a")
		p.rest()
		require.Nil(t, p.down.get(configMaps, "a"))
	})
}

// If another client removes or changes marks of an object that Upsync created, the syncer restores the marks. If the
// object that was born downstream is deleted while the mark of the origin is lost, the upstream object is deleted as
// well.
func TestLostMarksUpstream(t *testing.T) {
	for name, patch := range map[string]string{"origin removed": withoutOrigin, "uid removed": withoutUID, "uid changed": wrongUID, "all removed": withoutMarks} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				p := newPair(t, syncer.Options{Upsync: syncer.DefaultTypes})
				p.down.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: b, labels: {state.workload.kcp.io/my-cluster: Upsync}}, data: {k: v}}")
				p.rest()
				before := p.up.get(configMaps, "b")
				p.up.patch(configMaps, "b", patch)
				p.rest()
				require.NotNil(t, p.up.get(configMaps, "b"))
				require.Equal(t, before.GetUID(), p.up.get(configMaps, "b").GetUID())
				require.Equal(t, before.GetAnnotations(), p.up.get(configMaps, "b").GetAnnotations())
				p.stop()
				p.up.patch(configMaps, "b", withoutOrigin)
				p.down.delete(configMaps, "b")
				p.start(syncer.Options{Upsync: syncer.DefaultTypes})
				p.rest()
				require.Nil(t, p.up.get(configMaps, "b"))
			})
		})
	}
}

// An origin annotation that cannot name an object of the type counts as lost. If the origin exists, the syncer
// restores the annotation. Otherwise the downstream object stays, with ReasonOriginGone.
func TestAMalformedOriginIsALostOne(t *testing.T) {
	origins := []string{"a/b/c", "a", "default/", "/a", "default/..", "default/50%"}
	if testing.Short() {
		origins = origins[:2]
	}
	for _, origin := range origins {
		t.Run(origin, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				p := newPair(t, syncer.Options{})
				p.up.numbered(2)
				p.rest()
				p.stop()
				for i, uid := range []string{string(p.up.get(configMaps, nth(0)).GetUID()), "gone"} {
					p.down.mark(nth(i), origin, uid)
				}
				p.up.patch(configMaps, nth(1), `{"metadata":{"finalizers":null}}`)
				p.up.delete(configMaps, nth(1))
				p.start(syncer.Options{})
				p.rest()
				require.Equal(t, "default/"+nth(0), p.down.get(configMaps, nth(0)).GetAnnotations()["syncer.atoll.dev/origin"], "the annotation is restored")
				require.Equal(t, []string{"configmaps default/" + nth(1) + " OriginGone"}, p.problems())
				p.reset()
				time.Sleep(time.Hour)
				require.Empty(t, append(p.up.writes(), p.down.writes()...))
			})
		})
	}
}

// mark writes the marks of a ConfigMap with the field manager of a syncer.
func (s *side) mark(name, origin, uid string) {
	s.t.Helper()
	obj := s.get(configMaps, name)
	marks := obj.GetAnnotations()
	marks["syncer.atoll.dev/origin"], marks["syncer.atoll.dev/uid"] = origin, uid
	written := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	written.SetName(name)
	written.SetLabels(obj.GetLabels())
	written.SetAnnotations(marks)
	_, err := s.of(configMaps).Apply(s.t.Context(), name, written, metav1.ApplyOptions{FieldManager: "atoll-syncer", Force: true})
	require.NoError(s.t, err)
}
