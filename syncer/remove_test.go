// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/syncer"
)

const a = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: v}}"

// numbered creates n ConfigMaps.
func (s *side) numbered(n int) {
	for i := range n {
		s.create(configMaps, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: c-%03d}, data: {k: v}}", i))
	}
}

func (s *side) count() int {
	list, err := s.of(configMaps).List(s.t.Context(), metav1.ListOptions{})
	require.NoError(s.t, err)
	return len(list.Items)
}

// An object that is deleted upstream stays there until its downstream object is gone, even if another client's
// finalizer keeps the downstream object for long.
func TestObjectWaitsForItsCopy(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		p.up.create(configMaps, a)
		p.rest()
		p.down.patch(configMaps, "a", `{"metadata":{"finalizers":["example.org/theirs"]}}`)
		p.rest()
		p.reset()
		p.up.delete(configMaps, "a")
		time.Sleep(10 * time.Minute)
		require.NotNil(t, p.down.get(configMaps, "a").GetDeletionTimestamp())
		require.NotNil(t, p.up.get(configMaps, "a").GetDeletionTimestamp())
		require.Equal(t, []string{"delete configmaps a"}, p.down.writes())
		p.down.patch(configMaps, "a", `{"metadata":{"finalizers":null}}`)
		p.rest()
		require.Nil(t, p.down.get(configMaps, "a"))
		require.Nil(t, p.up.get(configMaps, "a"))
	})
}

// If another client's finalizer keeps an object that is deleted upstream, the syncer still deletes the downstream
// object and removes its own finalizer, each with one write.
func TestFinalizersOfOthers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		p.up.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, finalizers: [example.org/theirs]}}")
		p.rest()
		require.ElementsMatch(t, []string{"example.org/theirs", "syncer.atoll.dev/my-cluster"}, p.up.get(configMaps, "a").GetFinalizers())
		p.reset()
		p.up.delete(configMaps, "a")
		time.Sleep(10 * time.Minute)
		require.Equal(t, []string{"example.org/theirs"}, p.up.get(configMaps, "a").GetFinalizers())
		require.Equal(t, []string{"delete configmaps a", "patch configmaps a"}, p.up.writes())
		require.Equal(t, []string{"delete configmaps a"}, p.down.writes())
	})
}

// If an object is deleted while no syncer runs, its downstream object is deleted at the next start. If the
// finalizer was removed as well, there is no evidence of the deletion, and a person has to decide.
func TestMissedDeletes(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{Workers: 1})
		p.up.numbered(3)
		foreign := p.down.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs}}")
		p.rest()
		p.stop()
		require.Equal(t, 4, p.down.count(), "stopping deletes nothing")
		p.up.patch(configMaps, "c-000", `{"metadata":{"finalizers":null}}`)
		p.up.delete(configMaps, "c-000")
		p.up.delete(configMaps, "c-001")
		p.start(syncer.Options{})
		p.rest()
		require.Equal(t, []string{"configmaps default/c-000 OriginGone"}, p.problems())
		require.NotNil(t, p.down.get(configMaps, "c-000"))
		require.Equal(t, 1, p.Release())
		p.rest()
		require.Nil(t, p.down.get(configMaps, "c-000"))
		require.Nil(t, p.down.get(configMaps, "c-001"))
		require.Nil(t, p.up.get(configMaps, "c-001"))
		require.NotNil(t, p.down.get(configMaps, "c-002"))
		require.Equal(t, foreign.GetResourceVersion(), p.down.get(configMaps, "theirs").GetResourceVersion())
	})
}

// If an object moves to another cluster, the syncer deletes the downstream object in this cluster and removes our
// finalizer.
func TestMovedObject(t *testing.T) {
	for _, running := range []bool{true, false} {
		t.Run(fmt.Sprintf("running=%t", running), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				p := newPair(t, syncer.Options{})
				p.up.create(configMaps, a)
				p.rest()
				if !running {
					p.stop()
				}
				p.up.patch(configMaps, "a", `{"metadata":{"labels":{"workloads.kcp.io/cluster":"another"}}}`)
				if !running {
					p.start(syncer.Options{})
				}
				p.rest()
				require.Nil(t, p.down.get(configMaps, "a"))
				require.Empty(t, p.up.get(configMaps, "a").GetFinalizers())
				require.Equal(t, "v", field(p.up.get(configMaps, "a"), "data", "k"))
			})
		})
	}
}

// If an object without a downstream object loses the label of the target, the syncer removes our finalizer from it,
// also if no syncer ran at that time.
func TestMovedObjectWithoutCopy(t *testing.T) {
	for _, running := range []bool{true, false} {
		t.Run(fmt.Sprintf("running=%t", running), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				p := newPair(t, syncer.Options{})
				p.down.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {theirs: 'yes'}}}")
				p.up.create(configMaps, a)
				p.rest()
				require.NotEmpty(t, p.up.get(configMaps, "a").GetFinalizers())
				if !running {
					p.stop()
				}
				p.up.patch(configMaps, "a", `{"metadata":{"labels":{"workloads.kcp.io/cluster":null}}}`)
				if !running {
					p.start(syncer.Options{})
				}
				p.rest()
				require.Empty(t, p.up.get(configMaps, "a").GetFinalizers())
				require.Equal(t, "yes", p.down.get(configMaps, "a").GetLabels()["theirs"])
				require.Empty(t, p.problems())
			})
		})
	}
}

// A list or a read that fails, or does not end, is no evidence that an object is absent.
func TestNotKnownIsNotAbsent(t *testing.T) {
	for name, fault := range map[string]regiontest.Fault{
		"list is refused":     {Verb: "list", Resource: configMaps.GroupResource(), Times: -1, Do: regiontest.Refuse(http.StatusServiceUnavailable)},
		"list is forbidden":   {Verb: "list", Resource: configMaps.GroupResource(), Times: -1, Do: regiontest.Refuse(http.StatusForbidden)},
		"list hangs":          {Verb: "list", Resource: configMaps.GroupResource(), Times: -1, Do: regiontest.Hang()},
		"a get is refused":    {Verb: "get", Resource: configMaps.GroupResource(), Times: -1, Do: regiontest.Refuse(http.StatusServiceUnavailable)},
		"type is not served":  {Verb: "get", Resource: configMaps.GroupResource(), Times: -1, Do: regiontest.Refuse(http.StatusNotFound)},
		"all connections end": {Times: -1, Do: regiontest.DropRequest()},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				p := newPair(t, syncer.Options{})
				p.up.numbered(3)
				p.rest()
				p.stop()
				p.up.patch(configMaps, "c-000", `{"metadata":{"labels":{"workloads.kcp.io/cluster":null}}}`)
				p.up.Inject(fault)
				s, err := syncer.New(p.up.api, p.down.api, syncer.Options{Target: target})
				require.NoError(t, err)
				stop := run(t, s)
				time.Sleep(5 * time.Minute)
				require.Equal(t, 3, p.down.count())
				p.up.Reset()
				time.Sleep(5 * time.Minute)
				require.Equal(t, 2, p.down.count())
				stop()
			})
		})
	}
}

// An expired watch starts again with a list, which causes no write.
func TestExpiredWatches(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		p.up.numbered(5)
		p.rest()
		for range 5 {
			p.reset()
			p.up.Compact()
			p.down.Compact()
			p.up.Partition(true)
			p.down.Partition(true)
			time.Sleep(time.Minute)
			p.up.Partition(false)
			p.down.Partition(false)
			time.Sleep(time.Minute)
			require.Empty(t, p.up.writes())
			require.Empty(t, p.down.writes())
		}
		p.up.delete(configMaps, "c-000")
		p.rest()
		require.Equal(t, 4, p.down.count())
	})
}

// Another cluster that answers under the upstream's address lacks the upstream objects. That is no evidence that they
// were deleted.
func TestAnotherClusterAnswers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		one, two := newSide(t, "one", regiontest.Options{}), newSide(t, "two", regiontest.Options{})
		switching := switchedTo(one.api)
		p := &pair{t: t, up: one, down: newSide(t, "down", regiontest.Options{})}
		s, err := syncer.New(switching, p.down.api, syncer.Options{Target: target})
		require.NoError(t, err)
		stop := run(t, s)
		one.numbered(3)
		p.rest()
		require.Equal(t, 3, p.down.count())
		switching.to(two.api)
		one.patch(configMaps, "c-000", `{"metadata":{"labels":{"workloads.kcp.io/cluster":null}}}`)
		time.Sleep(5 * time.Minute)
		require.Equal(t, 3, p.down.count())
		stop()
	})
}

// switched is an API whose server can be exchanged while it is in use.
type switched struct{ now atomic.Pointer[region.API] }

func switchedTo(api region.API) *switched {
	s := &switched{}
	s.to(api)
	return s
}

func (s *switched) to(api region.API)            { s.now.Store(&api) }
func (s *switched) Dynamic() dynamic.Interface   { return (*s.now.Load()).Dynamic() }
func (s *switched) Metadata() metadata.Interface { return (*s.now.Load()).Metadata() }
func (s *switched) Discovery() region.Discovery  { return (*s.now.Load()).Discovery() }

// If too many downstream objects would be deleted at once, the deletions above the cap wait for a person.
func TestValve(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		p.up.numbered(30)
		p.rest()
		p.stop()
		for i := range 20 {
			p.up.delete(configMaps, fmt.Sprintf("c-%03d", i))
		}
		p.start(syncer.Options{})
		time.Sleep(10 * time.Minute)
		require.Equal(t, 20, p.down.count(), "10 of 30 may be deleted")
		at := slices.IndexFunc(p.Status().Types, func(s syncer.TypeStatus) bool { return s.Resource == configMaps })
		require.Equal(t, 10, p.Status().Types[at].Held)
		require.Len(t, p.problems(), 10)
		p.up.create(configMaps, a)
		p.rest()
		require.NotNil(t, p.down.get(configMaps, "a"), "other objects are synced")
		require.Equal(t, 0, p.Release(services.GroupResource()))
		p.up.delete(configMaps, "c-029")
		p.rest()
		require.NotNil(t, p.down.get(configMaps, "c-029"), "it is held with the others, however long ago they were held")
		require.Equal(t, 11, p.Release())
		p.rest()
		require.Equal(t, 10, p.down.count())
		require.Empty(t, p.problems())
	})
}

// If an object whose deletion is held is selected again, the deletion is dropped. When no deletion waits, the syncer
// deletes again.
func TestValveOpensWhenNothingWaits(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{DeleteCap: syncer.DeleteCap{Objects: 1, Share: 0.1}})
		p.up.numbered(5)
		p.rest()
		for i := range 3 {
			p.up.patch(configMaps, fmt.Sprintf("c-%03d", i), `{"metadata":{"labels":{"workloads.kcp.io/cluster":null}}}`)
		}
		p.rest()
		require.Equal(t, 4, p.down.count())
		require.Len(t, p.problems(), 2)
		for i := range 3 {
			p.up.patch(configMaps, fmt.Sprintf("c-%03d", i), `{"metadata":{"labels":{"workloads.kcp.io/cluster":"my-cluster"}}}`)
		}
		p.rest()
		require.Equal(t, 5, p.down.count())
		require.Empty(t, p.problems())
		time.Sleep(2 * time.Minute)
		p.up.delete(configMaps, "c-004")
		p.rest()
		require.Equal(t, 4, p.down.count())
	})
}

// While a deletion is held, the origin keeps the finalizer, which proves after a restart that the origin was withdrawn.
func TestAHeldDeletionKeepsItsProof(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		valve := syncer.Options{DeleteCap: syncer.DeleteCap{Objects: 1, Share: 0.1}}
		p := newPair(t, valve)
		p.up.numbered(5)
		p.rest()
		for i := range 3 {
			p.up.patch(configMaps, fmt.Sprintf("c-%03d", i), `{"metadata":{"labels":{"workloads.kcp.io/cluster":null}}}`)
		}
		p.rest()
		held := p.problems()
		require.Len(t, held, 2)
		p.stop()
		p.start(valve)
		p.rest()
		require.Subset(t, held, p.problems(), "the valve admits one more deletion")
		require.Len(t, p.problems(), 1)
		require.Equal(t, 1, p.Release())
		p.rest()
		require.Equal(t, 2, p.down.count())
		require.Empty(t, p.problems())
		for i := range 3 {
			require.Empty(t, p.up.get(configMaps, fmt.Sprintf("c-%03d", i)).GetFinalizers())
		}
	})
}

// If another client replaces a downstream object while the syncer's deletion of it is under way, the new object stays.
func TestDeletionMeansOneObject(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		p.up.create(configMaps, a)
		p.rest()
		p.down.Inject(regiontest.Fault{Verb: "delete", Resource: configMaps.GroupResource(), Do: regiontest.Delay(5 * time.Second)})
		p.up.delete(configMaps, "a")
		p.settle() // the syncer's deletion is under way
		p.down.delete(configMaps, "a")
		theirs := p.down.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {theirs: 'yes'}}}")
		p.rest()
		p.rest()
		require.Equal(t, theirs.GetUID(), p.down.get(configMaps, "a").GetUID())
		require.Nil(t, p.up.get(configMaps, "a"))
	})
}

// After a restart with another namespace map, the downstream objects in the old namespaces are deleted.
func TestChangedNamespaceMap(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{Namespaces: syncer.PrefixNamespaces("old-")})
		p.up.create(configMaps, a)
		p.rest()
		require.NotNil(t, p.down.get(configMaps, "a", "old-default"))
		p.stop()
		p.start(syncer.Options{Namespaces: syncer.PrefixNamespaces("new-")})
		p.rest()
		require.NotNil(t, p.down.get(configMaps, "a", "new-default"))
		require.Nil(t, p.down.get(configMaps, "a", "old-default"))
		require.NotNil(t, p.up.get(configMaps, "a"))
		p.stop()
		p.start(syncer.Options{})
		p.rest()
		require.NotNil(t, p.down.get(configMaps, "a"))
		require.Nil(t, p.down.get(configMaps, "a", "new-default"))
	})
}

// A downstream object that has lost our label is in no cache. If its origin is deleted, the syncer still deletes the
// downstream object. The origin keeps our finalizer until the downstream object is gone.
func TestCopyWithoutItsLabel(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		p.up.create(configMaps, a)
		p.rest()
		p.stop()
		p.down.patch(configMaps, "a", `{"metadata":{"labels":{"syncer.atoll.dev/owner":null},"finalizers":["example.org/theirs"]}}`)
		p.up.delete(configMaps, "a")
		p.start(syncer.Options{})
		p.rest()
		require.NotNil(t, p.down.get(configMaps, "a").GetDeletionTimestamp())
		require.NotEmpty(t, p.up.get(configMaps, "a").GetFinalizers())
		p.down.patch(configMaps, "a", `{"metadata":{"finalizers":null}}`)
		p.rest()
		require.Nil(t, p.down.get(configMaps, "a"))
		require.Nil(t, p.up.get(configMaps, "a"))
	})
}

// If another client keeps changing an object that is being deleted, the syncer still deletes its downstream object and
// removes our finalizer.
func TestBusyObject(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		p.up.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, finalizers: [example.org/theirs]}}")
		p.rest()
		p.up.delete(configMaps, "a")
		for i := range 20 {
			p.up.patch(configMaps, "a", fmt.Sprintf(`{"data":{"k":"%d"}}`, i))
			time.Sleep(time.Millisecond)
		}
		p.rest()
		p.rest()
		require.Equal(t, []string{"example.org/theirs"}, p.up.get(configMaps, "a").GetFinalizers())
		require.Nil(t, p.down.get(configMaps, "a"))
	})
}

// Deletions of misplaced downstream objects are held and released like others, whether or not an upstream namespace
// maps to their namespace.
func TestValveOfMisplacedCopies(t *testing.T) {
	for name, namespaces := range map[string]syncer.NamespaceMap{"of another": syncer.SameNamespaces(), "of nobody": syncer.PrefixNamespaces("new-")} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				p := newPair(t, syncer.Options{Namespaces: syncer.PrefixNamespaces("old-")})
				p.up.numbered(5)
				p.rest()
				p.stop()
				p.start(syncer.Options{Namespaces: namespaces, DeleteCap: syncer.DeleteCap{Objects: 1, Share: 0.1}})
				misplaced := func() (n int) {
					for i := range 5 {
						if p.down.get(configMaps, fmt.Sprintf("c-%03d", i), "old-default") != nil {
							n++
						}
					}
					return n
				}
				time.Sleep(5 * time.Minute)
				require.Equal(t, 4, misplaced())
				require.Len(t, p.problems(), 4)
				require.Equal(t, 4, p.Release())
				p.rest()
				require.Zero(t, misplaced())
				require.Empty(t, p.problems())
			})
		})
	}
}

// If another client adds our finalizer to an object that is not for this cluster, the syncer removes the finalizer, so
// that the object can be deleted.
func TestAFinalizerThatAnotherClientAdds(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		p.up.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {team: one}}}")
		p.up.patch(configMaps, "a", `{"metadata":{"finalizers":["syncer.atoll.dev/my-cluster"]}}`)
		p.up.delete(configMaps, "a")
		time.Sleep(45 * time.Minute)
		p.settle()
		require.Nil(t, p.up.get(configMaps, "a"))
	})
}

// If the downstream does not serve a type for a moment, the syncer does not conclude that the downstream object is
// gone: it deletes that object before it removes our finalizer from the origin.
func TestATypeThatIsNotServedDownstreamLetsNothingGo(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		p.up.create(configMaps, a)
		p.rest()
		p.stop()
		p.down.patch(configMaps, "a", `{"metadata":{"labels":{"syncer.atoll.dev/owner":null}}}`)
		p.up.delete(configMaps, "a")
		p.down.Inject(regiontest.Fault{Verb: "get", Resource: configMaps.GroupResource(), Name: "a", Times: 3, Do: regiontest.Refuse(http.StatusNotFound)})
		p.start(syncer.Options{})
		p.rest()
		p.rest()
		require.Nil(t, p.down.get(configMaps, "a"), "the downstream object is deleted")
		require.Nil(t, p.up.get(configMaps, "a"))
	})
}
