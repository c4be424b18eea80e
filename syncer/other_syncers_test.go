// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/syncer"
)

// rival is a Syncer that runs beside another one, with the messages of its AnotherEvents.
type rival struct {
	*syncer.Syncer
	stop func()

	mu   sync.Mutex
	told []string
}

func startRival(t *testing.T, up, down *side, opts syncer.Options) *rival {
	t.Helper()
	r := &rival{}
	opts.Target = target
	opts.Observer = &syncer.Observer{Another: func(_ context.Context, e syncer.AnotherEvent) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.told = append(r.told, e.Message)
	}}
	s, err := syncer.New(up.api, down.api, opts)
	require.NoError(t, err)
	r.Syncer, r.stop = s, run(t, s)
	return r
}

func (r *rival) heard() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.told
}

// painted returns a Transformer that sets data.color, so that two Syncers disagree about a ConfigMap.
func painted(color string) syncer.Transformer {
	return func(obj *unstructured.Unstructured) error {
		return unstructured.SetNestedField(obj.Object, color, "data", "color")
	}
}

// Two Syncers of one target notice and report each other, on whichever side they meet. They stop overwriting each
// other.
func TestTwoSyncersOfOneTarget(t *testing.T) {
	type world struct{ up, down, otherUp, otherDown *side }
	sides := func(t *testing.T) world {
		up, down := newSide(t, "up", withTargets(t)), newSide(t, "down", regiontest.Options{})
		return world{up, down, up, down}
	}
	beats := syncer.Options{Heartbeat: 20 * time.Second}
	for name, test := range map[string]struct {
		world     func(t *testing.T) world
		one, two  syncer.Options
		provoke   func(t *testing.T, w world)
		condition bool // both write one SyncTarget, which gets the condition AnotherSyncer
		remains   bool // the objects of the stopped Syncer stay, and remain a sign of it
	}{
		"with the same configuration": {world: sides, one: beats, two: beats, condition: true},
		"with another configuration": {
			world: sides,
			one:   syncer.Options{Heartbeat: 20 * time.Second, Transform: []syncer.Transformer{painted("red")}},
			two:   syncer.Options{Heartbeat: 20 * time.Second, Transform: []syncer.Transformer{painted("blue")}}, condition: true,
		},
		"with another configuration and without heartbeats": {
			world: sides,
			one:   syncer.Options{Transform: []syncer.Transformer{painted("red")}}, two: syncer.Options{Transform: []syncer.Transformer{painted("blue")}},
		},
		"to two clusters": {
			world: func(t *testing.T) world {
				w := sides(t)
				w.otherDown = newSide(t, "other-down", regiontest.Options{})
				return w
			},
			one: beats, two: beats, condition: true,
		},
		"from a copy of the upstream": {
			world: func(t *testing.T) world {
				w := sides(t)
				w.otherUp = newSide(t, "other-up", withTargets(t))
				require.NoError(t, w.otherUp.Load(w.up.Save()))
				return w
			},
			provoke: func(_ *testing.T, w world) {
				w.up.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: of-one}}")
				w.otherUp.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: of-two}}")
			},
		},
		"from another upstream, with the same names": {
			world: func(t *testing.T) world {
				w := sides(t)
				w.otherUp = newSide(t, "other-up", withTargets(t))
				return w
			},
			provoke: func(_ *testing.T, w world) {
				w.otherUp.create(configMaps, a)
				w.otherUp.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: of-two}}")
				time.Sleep(15 * time.Second)
				w.up.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: of-two}}")
			},
			remains: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := test.world(t)
				p := &pair{t: t, up: w.up, down: w.down}
				p.register()
				one := startRival(t, w.up, w.down, test.one)
				w.up.create(configMaps, a)
				p.rest()
				two := startRival(t, w.otherUp, w.otherDown, test.two)
				p.rest()
				if test.provoke != nil {
					test.provoke(t, w)
				}
				time.Sleep(3 * time.Minute)
				for _, r := range []*rival{one, two} {
					require.Contains(t, r.Status().AnotherSyncer, "another syncer works for target my-cluster")
					require.Contains(t, r.Status().AnotherSyncer, "stop one of the two")
					require.Len(t, r.heard(), 1)
					require.NotEmpty(t, r.heard()[0])
				}
				require.NotNil(t, w.down.get(configMaps, "a"))
				if test.condition {
					state, message := p.condition("AnotherSyncer")
					require.Equal(t, "True Noticed", state)
					require.Contains(t, message, "another process writes the heartbeat of the SyncTarget")
				}

				w.up.Reset()
				w.down.Reset()
				w.otherUp.Reset()
				before := w.down.get(configMaps, "a").GetResourceVersion()
				time.Sleep(5 * time.Minute)
				require.Equal(t, before, w.down.get(configMaps, "a").GetResourceVersion())
				require.LessOrEqual(t, w.up.writesBy("atoll-syncer-status-my-cluster"), 6)

				// Some time after one Syncer has stopped, the other Syncer no longer reports it.
				two.stop()
				if test.remains {
					return
				}
				time.Sleep(11 * time.Minute)
				require.Empty(t, one.Status().AnotherSyncer)
				require.Empty(t, one.heard()[len(one.heard())-1])
				if test.condition {
					state, _ := p.condition("AnotherSyncer")
					require.Equal(t, "False NotNoticed", state)
				}
			})
		})
	}
}

// If two Syncers keep writing different statuses of one object, one of them stops, reports that, and tries again every
// ten minutes.
func TestTwoStatusesOfOneObject(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		up, one, two := newSide(t, "up", regiontest.Options{}), newSide(t, "one", regiontest.Options{}), newSide(t, "two", regiontest.Options{})
		p := &pair{t: t, up: up, down: one}
		up.create(deployments, deployment)
		p.start(syncer.Options{})
		other := startRival(t, up, two, syncer.Options{})
		p.rest()
		one.patch(deployments, "web", `{"status":{"observedGeneration":1,"replicas":1}}`, "status")
		two.patch(deployments, "web", `{"status":{"observedGeneration":1,"replicas":2}}`, "status")
		time.Sleep(5 * time.Minute)
		up.Reset()
		time.Sleep(time.Hour)
		require.LessOrEqual(t, up.writesBy("atoll-syncer-status-my-cluster"), 2*6*6, "each tries again every ten minutes")
		var why []string
		for _, status := range []syncer.Status{p.Status(), other.Status()} {
			for _, s := range status.Types {
				for _, problem := range s.Problems {
					why = append(why, string(problem.Reason)+" "+problem.Message)
				}
			}
		}
		require.Len(t, why, 1, "one of the two has stopped writing")
		require.Contains(t, why[0], "StatusRefused the status was written again 5 times within 5m0s")
		require.Contains(t, why[0], "another syncer of target my-cluster or another client upstream overwrites it")
	})
}

// If a Syncer replaces another one, with another configuration or a short overlap, neither of them reports the other.
func TestOneSyncerAfterAnother(t *testing.T) {
	for _, overlap := range []bool{true, false} {
		t.Run(fmt.Sprintf("overlap=%t", overlap), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				p := &pair{t: t, up: newSide(t, "up", withTargets(t)), down: newSide(t, "down", regiontest.Options{})}
				p.register()
				p.up.numbered(3)
				opts := syncer.Options{Heartbeat: 20 * time.Second, Transform: []syncer.Transformer{painted("red")}}
				before := startRival(t, p.up, p.down, opts)
				time.Sleep(time.Minute)
				color := "red"
				if !overlap {
					before.stop()
					color = "blue"
					opts.Transform = []syncer.Transformer{painted(color)}
				}
				after := startRival(t, p.up, p.down, opts)
				time.Sleep(5 * time.Second)
				before.stop()
				time.Sleep(10 * time.Minute)
				require.Empty(t, before.heard())
				require.Empty(t, after.heard())
				require.Empty(t, after.Status().AnotherSyncer)
				state, _ := p.condition("AnotherSyncer")
				require.Empty(t, state)
				for _, v := range []string{"w", "v", "w"} {
					p.up.patch(configMaps, "c-000", `{"data":{"k":"`+v+`"}}`)
					p.rest()
				}
				require.Equal(t, color, field(p.down.get(configMaps, "c-000"), "data", "color"))
				require.Empty(t, after.heard(), "a field that changes back and forth upstream is no sign of another syncer")
			})
		})
	}
}
