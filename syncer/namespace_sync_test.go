// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/rightstest"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/syncer"
)

const (
	shop    = "{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {team: a}}}"
	inShop  = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}, data: {k: v}}"
	ofShops = "acme-shop"
)

// shops returns a pair whose upstream has the namespace shop with a ConfigMap. If bare is true, the upstream has no
// namespace controller.
func shops(t *testing.T, bare bool, opts syncer.Options) (*pair, syncer.Options) {
	t.Helper()
	opts = quiet(configMaps, opts)
	opts.Namespaces = syncer.PrefixNamespaces("acme-")
	p := &pair{t: t, up: newSide(t, "up", regiontest.Options{KeepNamespaceContent: bare}), down: newSide(t, "down", regiontest.Options{})}
	p.up.create(namespaces, shop)
	p.up.create(configMaps, inShop)
	p.start(opts)
	require.NotNil(t, p.down.get(configMaps, "a", ofShops))
	return p, opts
}

// If the upstream has no namespace controller, Finish deletes the synced objects in a namespace that is being deleted,
// and then ends the namespace.
func TestANamespaceEndsUpstream(t *testing.T) {
	for _, running := range []bool{true, false} {
		t.Run(fmt.Sprintf("running=%t", running), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				p, opts := shops(t, true, syncer.Options{NamespaceSync: syncer.NamespaceOptions{Finish: true}})
				require.Contains(t, p.up.get(namespaces, "shop").GetFinalizers(), "syncer.atoll.dev/my-cluster")
				if !running {
					p.stop()
				}
				p.up.delete(namespaces, "shop")
				if !running {
					p.start(opts)
				}
				time.Sleep(time.Minute)
				require.Nil(t, p.down.get(configMaps, "a", ofShops))
				require.Nil(t, p.up.get(configMaps, "a", "shop"))
				require.Nil(t, p.up.get(namespaces, "shop"))
				require.NotNil(t, p.down.get(namespaces, ofShops), "the namespace downstream stays without Delete")
				require.Empty(t, p.problems())

				// A new namespace of the same name is synced.
				p.up.create(namespaces, shop)
				p.up.create(configMaps, inShop)
				p.rest()
				require.NotNil(t, p.down.get(configMaps, "a", ofShops))
				require.NotEmpty(t, p.up.get(namespaces, "shop").GetFinalizers())
			})
		})
	}
}

// If a namespace is created again while a reconcile ends its predecessor, the new namespace keeps its objects.
func TestANamespaceThatWasCreatedAgainIsNotEnded(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p, _ := shops(t, true, syncer.Options{NamespaceSync: syncer.NamespaceOptions{Finish: true, Delete: true}})
		p.up.Inject(regiontest.Fault{Verb: "get", Resource: namespaces.GroupResource(), Name: "shop", Do: regiontest.Delay(20 * time.Second)})
		p.up.delete(namespaces, "shop")
		time.Sleep(10 * time.Second)
		ended := p.up.patch(namespaces, "shop", `{"metadata":{"finalizers":null}}`)
		ended.Object["spec"] = map[string]any{}
		_, err := p.up.of(namespaces).Update(t.Context(), ended, metav1.UpdateOptions{}, "finalize")
		require.NoError(t, err)
		p.up.create(namespaces, shop)
		time.Sleep(time.Minute)
		require.Nil(t, p.up.get(namespaces, "shop").GetDeletionTimestamp())
		kept := p.up.get(configMaps, "a", "shop")
		require.NotNil(t, kept)
		require.Nil(t, kept.GetDeletionTimestamp())
		require.NotNil(t, p.down.get(configMaps, "a", ofShops))
	})
}

// Finish does not delete objects that are not synced, and keeps their namespace until they are gone.
func TestANamespaceIsNotEndedAroundOthers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p, _ := shops(t, true, syncer.Options{NamespaceSync: syncer.NamespaceOptions{Finish: true}})
		p.up.create(services, "{apiVersion: v1, kind: Service, metadata: {name: theirs, namespace: shop, labels: {theirs: 'yes'}}, spec: {ports: [{port: 80}]}}")
		p.up.delete(namespaces, "shop")
		time.Sleep(time.Hour)
		require.Nil(t, p.up.get(configMaps, "a", "shop"))
		require.NotNil(t, p.up.get(services, "theirs", "shop"))
		require.NotNil(t, p.up.get(namespaces, "shop"))
		require.Equal(t, []string{"namespaces /shop Namespace"}, p.problems())
		p.up.Reset()
		time.Sleep(10 * time.Hour)
		lists := slices.DeleteFunc(p.up.Requests(), func(r regiontest.Request) bool { return r.Resource != "services" })
		require.LessOrEqual(t, len(lists), 11, "one list of each type an hour")
		require.NoError(t, p.up.of(services, "shop").Delete(t.Context(), "theirs", metav1.DeleteOptions{}))
		time.Sleep(time.Hour + time.Minute)
		require.Nil(t, p.up.get(namespaces, "shop"))
		require.Empty(t, p.problems())
	})
}

// With Delete, the deletion of a namespace upstream deletes the downstream namespace too, and completes on both sides.
// This holds with a namespace controller upstream, and with Finish instead of one.
func TestANamespaceEndsDownstream(t *testing.T) {
	for _, bare := range []bool{false, true} {
		t.Run(fmt.Sprintf("bare=%t", bare), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				p, _ := shops(t, bare, syncer.Options{NamespaceSync: syncer.NamespaceOptions{Finish: bare, Delete: true}})
				p.down.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: kube-root-ca.crt, namespace: acme-shop, labels: {theirs: 'yes'}}}")
				p.up.delete(namespaces, "shop")
				time.Sleep(time.Minute)
				require.Nil(t, p.down.get(namespaces, ofShops))
				require.Nil(t, p.up.get(namespaces, "shop"))
				require.Empty(t, p.problems())
			})
		})
	}
}

// If a namespace was deleted upstream while no syncer ran, the downstream namespace is deleted once a person has
// released the objects in it.
func TestAMissedEndOfANamespace(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p, opts := shops(t, false, syncer.Options{})
		p.stop()
		_, err := p.up.of(configMaps, "shop").Patch(t.Context(), "a", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		require.NoError(t, err)
		p.up.delete(namespaces, "shop")
		opts.NamespaceSync.Delete = true
		p.start(opts)
		time.Sleep(time.Minute)
		require.NotNil(t, p.down.get(configMaps, "a", ofShops))
		require.NotNil(t, p.down.get(namespaces, ofShops))
		require.Equal(t, []string{"configmaps shop/a OriginGone", "namespaces /shop Foreign"}, p.problems())
		require.Equal(t, 1, p.Release())
		time.Sleep(time.Hour)
		require.Nil(t, p.down.get(namespaces, ofShops))
		require.Empty(t, p.problems())
	})
}

// A downstream namespace stays if another client created it, or has objects in it. The upstream namespace does not
// wait for it.
func TestANamespaceOfOthersStays(t *testing.T) {
	for name, theirs := range map[string]func(p *pair){
		"objects of others": func(p *pair) {
			p.down.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs, namespace: acme-shop, labels: {theirs: 'yes'}}}")
		},
		"another client's label": func(p *pair) {
			owner := p.Status().Owner
			p.stop()
			p.down.delete(namespaces, ofShops)
			p.down.create(namespaces, "{apiVersion: v1, kind: Namespace, metadata: {name: acme-shop, labels: {syncer.atoll.dev/owner: "+owner+"}}}")
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				p, opts := shops(t, true, syncer.Options{NamespaceSync: syncer.NamespaceOptions{Finish: true, Delete: true, Metadata: []string{"*"}}})
				theirs(p)
				before := p.down.get(namespaces, ofShops)
				p.stop()
				p.start(opts)
				p.up.delete(namespaces, "shop")
				time.Sleep(10 * time.Minute)
				require.Nil(t, p.up.get(namespaces, "shop"))
				require.NotNil(t, p.down.get(namespaces, ofShops))
				require.Equal(t, before.GetResourceVersion(), p.down.get(namespaces, ofShops).GetResourceVersion())
			})
		})
	}
}

// If many downstream namespaces would be deleted, their deletions wait for a person, and the upstream namespaces wait
// for these deletions.
func TestNamespacesAndTheValve(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p, _ := shops(t, true, syncer.Options{NamespaceSync: syncer.NamespaceOptions{Finish: true, Delete: true}, DeleteCap: syncer.DeleteCap{Objects: 1, Share: 0.1, Within: time.Hour}})
		for i := range 3 {
			p.up.create(namespaces, fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: n-%d, labels: {team: a}}}", i))
			p.up.create(configMaps, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: n-%d}, data: {k: v}}", i))
		}
		p.rest()
		for i := range 3 {
			p.up.delete(namespaces, fmt.Sprintf("n-%d", i))
		}
		time.Sleep(10 * time.Minute)
		require.Equal(t, 2, p.Release(configMaps.GroupResource()))
		time.Sleep(time.Minute)
		left := 0
		for i := range 3 {
			if p.down.get(namespaces, fmt.Sprintf("acme-n-%d", i)) != nil {
				require.NotNil(t, p.up.get(namespaces, fmt.Sprintf("n-%d", i)), "it waits for the one downstream")
				left++
			}
		}
		require.Equal(t, 2, left)
		require.Equal(t, 2, p.Release(namespaces.GroupResource()))
		time.Sleep(time.Minute)
		for i := range 3 {
			require.Nil(t, p.down.get(namespaces, fmt.Sprintf("acme-n-%d", i)))
			require.Nil(t, p.up.get(namespaces, fmt.Sprintf("n-%d", i)))
		}
	})
}

// Detach removes our finalizer from namespaces too.
func TestDetachOfNamespaces(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p, _ := shops(t, true, syncer.Options{NamespaceSync: syncer.NamespaceOptions{Finish: true}})
		require.NotEmpty(t, p.up.get(namespaces, "shop").GetFinalizers())
		p.stop()
		require.NoError(t, p.Detach(t.Context()))
		require.Empty(t, p.up.get(namespaces, "shop").GetFinalizers())
	})
}

// Only the labels and annotations that Metadata names go down.
func TestMetadataOfNamespaces(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p, opts := shops(t, true, syncer.Options{NamespaceSync: syncer.NamespaceOptions{Metadata: []string{"team", "example.org/*"}}})
		labels := func() map[string]string {
			all := p.down.get(namespaces, ofShops).GetLabels()
			delete(all, "syncer.atoll.dev/owner")
			delete(all, "kubernetes.io/metadata.name")
			return all
		}
		require.Equal(t, map[string]string{"team": "a"}, labels(), "since its creation")
		p.up.patch(namespaces, "shop", `{"metadata":{"labels":{"team":"b","teams":"x","example.org/tier":"gold","kubernetes.io/x":"y","splitter.atoll.dev/x":"y"},`+
			`"annotations":{"example.org/note":"n","kubectl.kubernetes.io/x":"y"}}}`)
		p.rest()
		require.Equal(t, map[string]string{"team": "b", "example.org/tier": "gold"}, labels())
		require.Equal(t, map[string]string{"example.org/note": "n"}, p.down.get(namespaces, ofShops).GetAnnotations())

		// Labels that are removed upstream are removed downstream. Labels that another client sets downstream stay.
		p.up.patch(namespaces, "shop", `{"metadata":{"labels":{"team":null},"annotations":null}}`)
		p.down.patch(namespaces, ofShops, `{"metadata":{"labels":{"example.org/tier":"theirs","theirs":"x"}}}`)
		p.rest()
		require.Equal(t, map[string]string{"example.org/tier": "theirs", "theirs": "x"}, labels())
		require.Empty(t, p.down.get(namespaces, ofShops).GetAnnotations())
		require.Equal(t, []string{"namespaces /shop Foreign"}, p.problems())
		p.down.patch(namespaces, ofShops, `{"metadata":{"labels":{"example.org/tier":null}}}`)
		p.rest()
		require.Equal(t, map[string]string{"example.org/tier": "gold", "theirs": "x"}, labels())
		require.Empty(t, p.problems())

		p.stop()
		p.start(opts)
		p.reset()
		time.Sleep(time.Hour)
		require.Empty(t, append(p.up.writes(), p.down.writes()...), "at rest nothing is written")
		p.stop()
		opts.NamespaceSync.Metadata = []string{}
		p.start(opts)
		require.Equal(t, map[string]string{"theirs": "x"}, labels())
	})
}

// The syncer only makes the levels of pod security downstream stricter.
func TestPodSecurityOfNamespaces(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p, opts := shops(t, true, syncer.Options{NamespaceSync: syncer.NamespaceOptions{Metadata: []string{syncer.PodSecurity}}})
		level := func(mode string) string {
			return p.down.get(namespaces, ofShops).GetLabels()["pod-security.kubernetes.io/"+mode]
		}
		set := func(s *side, mode, level string) {
			name := "shop"
			if s == p.down {
				name = ofShops
			}
			s.patch(namespaces, name, fmt.Sprintf(`{"metadata":{"labels":{"pod-security.kubernetes.io/%s":%s}}}`, mode, level))
			p.rest()
		}
		set(p.up, "enforce", `"baseline"`)
		require.Empty(t, level("enforce"), "the default downstream may be stricter")
		set(p.up, "enforce", `"restricted"`)
		require.Equal(t, "restricted", level("enforce"))
		set(p.up, "enforce", `"privileged"`)
		require.Equal(t, "restricted", level("enforce"))
		set(p.up, "enforce", `null`)
		require.Equal(t, "restricted", level("enforce"))
		set(p.up, "enforce-version", `"v1.20"`)
		require.Empty(t, level("enforce-version"))

		set(p.down, "warn", `"privileged"`)
		set(p.up, "warn", `"baseline"`)
		require.Equal(t, "privileged", level("warn"), "the level of another client is not overwritten, and is reported")
		require.Equal(t, []string{"namespaces /shop Foreign"}, p.problems())
		set(p.down, "warn", `"restricted"`)
		require.Equal(t, "restricted", level("warn"))
		require.Empty(t, p.problems())

		p.stop()
		opts.NamespaceSync.DefaultPodSecurity = "privileged"
		p.start(opts)
		set(p.up, "audit", `"baseline"`)
		require.Equal(t, "baseline", level("audit"))
		set(p.up, "audit", `"nonsense"`)
		require.Equal(t, "baseline", level("audit"))
		set(p.down, "audit", `"restricted"`)
		require.Equal(t, "restricted", level("audit"))
		p.reset()
		time.Sleep(time.Hour)
		require.Empty(t, append(p.up.writes(), p.down.writes()...), "at rest nothing is written")
	})
}

func TestNamespaceOptions(t *testing.T) {
	for want, opts := range map[string]syncer.Options{
		`Metadata[1] "a*b"`:           {NamespaceSync: syncer.NamespaceOptions{Metadata: []string{"a", "a*b"}}},
		`Metadata[0] ""`:              {NamespaceSync: syncer.NamespaceOptions{Metadata: []string{""}}},
		`DefaultPodSecurity "strict"`: {NamespaceSync: syncer.NamespaceOptions{DefaultPodSecurity: "strict"}},
		`choose one`:                  {NamespaceSync: syncer.NamespaceOptions{Finish: true}, Permit: []syncer.Power{syncer.PermitNamespaces}},
	} {
		opts.Target = target
		up := newSide(t, "up", regiontest.Options{})
		_, err := syncer.New(up.api, up.api, opts)
		require.ErrorContains(t, err, want)
	}
}

// With NamespaceOptions, UpstreamRights and DownstreamRights return all rights that the syncer uses.
func TestRightsOfNamespaces(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		opts := syncer.Options{Target: target, Types: typesAre(few), NamespaceSync: syncer.NamespaceOptions{Finish: true, Delete: true, Metadata: []string{"team"}}}
		upGrants, downGrants := rightstest.New(syncer.UpstreamRights(opts, few...)...), rightstest.New(syncer.DownstreamRights(opts, few...)...)
		up, upAPI := guarded(t, "up", regiontest.Options{KeepNamespaceContent: true}, upGrants)
		down, downAPI := guarded(t, "down", regiontest.Options{}, downGrants)
		s, err := syncer.New(upAPI, downAPI, opts)
		require.NoError(t, err)
		run(t, s)
		p := &pair{t: t, up: up, down: down}
		up.create(namespaces, shop)
		up.create(configMaps, inShop)
		p.rest()
		up.patch(namespaces, "shop", `{"metadata":{"labels":{"team":"b"}}}`)
		p.rest()
		require.Equal(t, "b", down.get(namespaces, "shop").GetLabels()["team"])
		up.delete(namespaces, "shop")
		time.Sleep(time.Minute)
		require.Nil(t, down.get(namespaces, "shop"))
		require.Nil(t, up.get(namespaces, "shop"))
		require.Empty(t, upGrants.Denied(up.Requests()))
		require.Empty(t, downGrants.Denied(down.Requests()))
	})
}
