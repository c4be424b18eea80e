// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/syncer"
)

// messageOf returns the message of the problem of a ConfigMap, or "" if it has no problem.
func (p *pair) messageOf(name string) string {
	for _, s := range p.Status().Types {
		for _, problem := range s.Problems {
			if s.Resource == configMaps && problem.Object.Name == name {
				return problem.Message
			}
		}
	}
	return ""
}

// If the upstream is restored from a backup, each downstream object that is newer than the backup stays, although the
// deletion of so few objects would not exceed the cap. It stays until a person releases it or a restored object takes
// it over.
func TestUpstreamRestored(t *testing.T) {
	for name, world := range map[string]struct {
		before func(p *pair) // runs before the backup
		after  func(p *pair) // runs after the backup and before the restore
		taken  bool          // the restored object takes over the downstream object
	}{
		"created since": {
			before: func(*pair) {},
			after:  func(p *pair) { p.up.create(configMaps, b) },
		},
		"labelled since": {
			before: func(p *pair) {
				p.up.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: b, labels: {tier: front}}, data: {k: v}}")
			},
			after: func(p *pair) {
				p.up.patch(configMaps, "b", `{"metadata":{"labels":{"workloads.kcp.io/cluster":"my-cluster"}}}`)
			},
		},
		"came from another cluster since": {
			before: func(p *pair) {
				p.up.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: b, labels: {workloads.kcp.io/cluster: other}}, data: {k: v}}")
			},
			after: func(p *pair) {
				p.up.patch(configMaps, "b", `{"metadata":{"labels":{"workloads.kcp.io/cluster":"my-cluster"}}}`)
			},
		},
		"created anew since": {
			before: func(p *pair) { p.up.create(configMaps, b); p.rest() },
			after:  func(p *pair) { p.up.delete(configMaps, "b"); p.rest(); p.up.create(configMaps, b) },
			taken:  true,
		},
		"created anew since, and in deletion in the backup": {
			before: func(p *pair) {
				p.up.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: b, finalizers: [example.org/theirs]}, data: {k: v}}")
				p.rest()
				p.up.delete(configMaps, "b")
				p.rest()
			},
			after: func(p *pair) {
				p.up.patch(configMaps, "b", `{"metadata":{"finalizers":null}}`)
				p.up.create(configMaps, b)
			},
		},
	} {
		for _, running := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/running=%t", name, running), func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					p := newPair(t, syncer.Options{})
					p.up.numbered(5)
					world.before(p)
					p.rest()
					backup := p.up.Save()
					world.after(p)
					p.rest()
					made := p.down.get(configMaps, "b")
					require.NotNil(t, made)
					if !running {
						p.stop()
					}
					require.NoError(t, p.up.Load(backup))
					for i := range 20 { // until resourceVersions exceed those before the restore
						p.up.patch(configMaps, "c-000", fmt.Sprintf(`{"data":{"k":"%d"}}`, i))
					}
					if !running {
						p.start(syncer.Options{})
					}
					time.Sleep(5 * time.Minute)
					there := p.down.get(configMaps, "b")
					require.NotNil(t, there)
					require.Equal(t, made.GetUID(), there.GetUID())
					require.Equal(t, "19", field(p.down.get(configMaps, "c-000"), "data", "k"), "other objects are synced")
					p.up.delete(configMaps, "c-001")
					p.rest()
					require.Nil(t, p.down.get(configMaps, "c-001"), "other deletions are made")
					if world.taken {
						require.Equal(t, string(p.up.get(configMaps, "b").GetUID()), there.GetAnnotations()["syncer.atoll.dev/uid"])
						require.Empty(t, p.problems())
						require.Zero(t, p.Release())
						return
					}

					require.Equal(t, []string{"configmaps default/b OriginGone"}, p.problems())
					require.Contains(t, p.messageOf("b"), "restored from a backup")
					require.Contains(t, p.messageOf("b"), "call Release")
					at := slices.IndexFunc(p.Status().Types, func(s syncer.TypeStatus) bool { return s.Resource == configMaps })
					require.Equal(t, 1, p.Status().Types[at].Held)
					require.Equal(t, 1, p.Status().Types[at].OriginGone)
					require.Equal(t, 1, p.Release(configMaps.GroupResource()))
					p.rest()
					p.rest()
					if there := p.down.get(configMaps, "b"); there != nil {
						require.NotEqual(t, made.GetUID(), there.GetUID(), "it is a new object, of the restored origin")
					}
					require.Empty(t, p.problems())
				})
			})
		}
	}
}

// If a lost origin is created again after a restore, the new object takes over the downstream object, even with other
// content.
func TestLostOriginIsCreatedAgain(t *testing.T) {
	for _, running := range []bool{true, false} {
		t.Run(fmt.Sprintf("running=%t", running), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				p := newPair(t, syncer.Options{})
				backup := p.up.Save()
				p.up.create(configMaps, b)
				p.rest()
				made := p.down.get(configMaps, "b").GetUID()
				if !running {
					p.stop()
				}
				require.NoError(t, p.up.Load(backup))
				time.Sleep(time.Minute)
				again := p.up.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: b}, data: {k: w}}")
				if !running {
					p.start(syncer.Options{})
				}
				time.Sleep(time.Minute)
				there := p.down.get(configMaps, "b")
				require.Equal(t, made, there.GetUID())
				require.Equal(t, "w", field(there, "data", "k"))
				require.Equal(t, string(again.GetUID()), there.GetAnnotations()["syncer.atoll.dev/uid"])
				require.Empty(t, p.problems())
				p.reset()
				time.Sleep(time.Hour)
				require.Empty(t, append(p.up.writes(), p.down.writes()...))
				p.up.delete(configMaps, "b")
				p.rest()
				require.Nil(t, p.down.get(configMaps, "b"))
			})
		})
	}
}

// If another syncer keeps taking a downstream object over for its own upstream, this syncer stops rewriting it after a
// few times, and reports a fight.
func TestACopyOfTwoUpstreamsInTurns(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		p.up.create(configMaps, a)
		p.rest()
		p.reset()
		for i := range 20 {
			theirs := p.down.get(configMaps, "a")
			theirs.SetManagedFields(nil)
			marks := theirs.GetAnnotations()
			marks["syncer.atoll.dev/uid"] = fmt.Sprintf("theirs-%d", i)
			theirs.SetAnnotations(marks)
			_, err := p.down.of(configMaps).Apply(t.Context(), "a", theirs, metav1.ApplyOptions{FieldManager: "atoll-syncer", Force: true})
			require.NoError(t, err)
			p.settle()
		}
		require.Equal(t, []string{"configmaps default/a Fight"}, p.problems())
		require.Less(t, p.down.writesBy("atoll-syncer"), 40)
	})
}

// Release deletes the downstream objects of many lost origins at once, even above the cap: a person has decided.
func TestReleaseOfManyLostOrigins(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := &pair{t: t, up: newSide(t, "up", withTargets(t)), down: newSide(t, "down", regiontest.Options{})}
		_, err := p.up.client.Resource(syncTargets).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "workload.kcp.io/v1alpha1", "kind": "SyncTarget", "metadata": map[string]any{"name": target},
		}}, metav1.CreateOptions{})
		require.NoError(t, err)
		p.start(syncer.Options{Heartbeat: 20 * time.Second})
		backup := p.up.Save()
		p.up.numbered(20)
		p.rest()
		require.NoError(t, p.up.Load(backup))
		time.Sleep(2 * time.Minute)
		require.Equal(t, 20, p.down.count())
		require.Contains(t, p.conditions(), "DeletionsHeld True OriginsGone")
		at := slices.IndexFunc(p.target().Status.Conditions, func(c metav1.Condition) bool { return c.Type == "DeletionsHeld" })
		message := p.target().Status.Conditions[at].Message
		require.True(t, strings.HasPrefix(message, "wait to be deleted: 20 configmaps; of these 20 configmaps (default/c-000, default/c-001, default/c-002, ...): origin default/c-000"), message)
		require.Contains(t, message, "Release")
		require.Equal(t, 20, p.Release())
		time.Sleep(time.Minute)
		require.Zero(t, p.down.count())
		require.Contains(t, p.conditions(), "DeletionsHeld False WithinCap")
	})
}

// If a type was defined upstream after the backup, a restore removes the type with its objects. When the type is
// defined again, the downstream objects of these objects stay.
func TestUpstreamRestoredBeforeATypeWasDefined(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := &pair{t: t, up: newSide(t, "up", regiontest.Options{}), down: newSide(t, "down", regiontest.Options{})}
		require.NoError(t, p.up.client.Resource(crds).Delete(t.Context(), "widgets.example.org", metav1.DeleteOptions{}))
		p.start(syncer.Options{})
		backup := p.up.Save()
		require.NoError(t, p.up.AddCRD(crd("widgets", "Widget", true)))
		time.Sleep(time.Minute)
		p.up.create(widgets, "{apiVersion: example.org/v1, kind: Widget, metadata: {name: a}, spec: {size: 1}}")
		p.rest()
		require.NotNil(t, p.down.get(widgets, "a"))
		require.NoError(t, p.up.Load(backup))
		time.Sleep(5 * time.Minute)
		require.Equal(t, syncer.ReasonNotServedUpstream, p.reason(widgets))
		require.NoError(t, p.up.AddCRD(crd("widgets", "Widget", true)))
		time.Sleep(5 * time.Minute)
		require.NotNil(t, p.down.get(widgets, "a"))
		require.Equal(t, []string{"widgets default/a OriginGone"}, p.problems())
	})
}

// A person removes the finalizer of an origin and deletes the origin. A running syncer sees the deletion, which is
// evidence. A syncer that was stopped at that time has no evidence.
func TestOriginTakenByForce(t *testing.T) {
	for _, running := range []bool{true, false} {
		t.Run(fmt.Sprintf("running=%t", running), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				p := newPair(t, syncer.Options{})
				p.up.create(configMaps, a)
				p.up.create(configMaps, b)
				p.rest()
				before := p.down.get(configMaps, "b").GetUID()
				if !running {
					p.stop()
				}
				// A running syncer may add the finalizer again before the deletion, which then waits until the syncer removes it.
				for _, name := range []string{"a", "b"} {
					p.up.patch(configMaps, name, `{"metadata":{"finalizers":null}}`)
					p.up.delete(configMaps, name)
				}
				if running {
					p.rest() // a finalizer that was added again delays the deletion of b
				}
				p.up.create(configMaps, b)
				if !running {
					p.start(syncer.Options{})
				}
				p.rest()
				require.Equal(t, running, p.down.get(configMaps, "a") == nil)
				require.Equal(t, running, p.down.get(configMaps, "b").GetUID() != before)
				if running {
					return
				}
				require.Equal(t, []string{"configmaps default/a OriginGone"}, p.problems())
				require.Equal(t, 1, p.Release())
				p.rest()
				require.Nil(t, p.down.get(configMaps, "a"))
				require.Equal(t, types.UID(p.down.get(configMaps, "b").GetAnnotations()["syncer.atoll.dev/uid"]), p.up.get(configMaps, "b").GetUID())
				require.Empty(t, p.problems())
			})
		})
	}
}

// If an object loses the label of the target, the syncer deletes its downstream object and then removes our finalizer.
// If the process ends before one of these steps, the next process completes them. The same holds if the object is
// deleted upstream meanwhile.
func TestEndWhileAnObjectLeaves(t *testing.T) {
	for name, fault := range map[string]struct {
		side func(*pair) *side
		verb string
	}{
		"before the copy was deleted":      {func(p *pair) *side { return p.down }, "delete"},
		"before the finalizer was removed": {func(p *pair) *side { return p.up }, "patch"},
	} {
		for _, deleted := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/deleted=%t", name, deleted), func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					p := newPair(t, syncer.Options{})
					p.up.create(configMaps, a)
					p.rest()
					p.up.patch(configMaps, "a", `{"metadata":{"labels":{"theirs":"yes"}}}`)
					p.rest()
					broken := fault.side(p)
					p.up.patch(configMaps, "a", `{"metadata":{"labels":{"workloads.kcp.io/cluster":null}}}`)
					broken.Inject(regiontest.Fault{Verb: fault.verb, Resource: configMaps.GroupResource(), Times: -1, Do: regiontest.DropRequest()})
					p.settle()
					p.stop()
					broken.Reset()
					if deleted {
						p.up.delete(configMaps, "a")
					}
					p.start(syncer.Options{})
					p.rest()
					require.Nil(t, p.down.get(configMaps, "a"))
					if deleted {
						require.Nil(t, p.up.get(configMaps, "a"))
					} else {
						require.Empty(t, p.up.get(configMaps, "a").GetFinalizers())
					}
					require.Empty(t, p.problems())
				})
			})
		}
	}
}
