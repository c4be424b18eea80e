// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/syncer"
)

// diff returns what Diff yields for these options, as "type key write", "type key !reason" or "type key error".
func (p *pair) diff(opts syncer.Options) (changes []string) {
	p.t.Helper()
	opts.Target = target
	s, err := syncer.New(p.up.api, p.down.api, opts)
	require.NoError(p.t, err)
	for c, err := range s.Diff(p.t.Context()) {
		what := string(c.Write)
		switch {
		case err != nil:
			what = "error"
		case c.Write == "":
			what = "!" + string(c.Reason)
			require.NotEmpty(p.t, c.Message)
		case len(c.Overruled) > 0:
			what += " " + strings.Join(c.Overruled, "; ")
		}
		changes = append(changes, fmt.Sprintf("%s %s %s", c.Resource.Resource, strings.TrimPrefix(c.Object.String(), "/"), what))
	}
	return changes
}

func TestDiff(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		p.up.create(namespaces, "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")
		for _, name := range []string{"changed", "deleted", "drifted", "left", "rests"} {
			p.up.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+name+"}, data: {k: v}}")
		}
		p.up.create(deployments, deployment)
		p.rest()
		require.Empty(t, p.diff(syncer.Options{}), "the running syncer has written everything")
		p.stop()

		p.up.create(configMaps, a)
		p.up.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: shop}}")
		p.down.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: foreign, labels: {theirs: 'yes'}}}")
		p.up.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: foreign}}")
		p.up.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: refused}}")
		p.up.patch(configMaps, "changed", `{"data":{"k":"w"}}`)
		p.up.delete(configMaps, "deleted")
		p.down.patch(configMaps, "drifted", `{"data":{"k":"theirs"}}`)
		p.up.patch(configMaps, "left", `{"metadata":{"labels":{"workloads.kcp.io/cluster":null}}}`)
		p.down.patch(deployments, "web", `{"status":{"observedGeneration":1,"replicas":2}}`, "status")
		p.reset()
		before := [][]string{p.versions(p.up), p.versions(p.down)}
		p.down.Inject(regiontest.Fault{Verb: "patch", Resource: configMaps.GroupResource(), Name: "refused", Times: -1, Do: regiontest.Refuse(http.StatusUnprocessableEntity)})
		require.Equal(t, []string{
			"configmaps default/a Finalizer",
			"configmaps default/a Create",
			"configmaps default/changed Update",
			"configmaps default/deleted Delete",
			`configmaps default/drifted Update .data.k: conflict with "somebody" using v1`,
			"configmaps default/foreign Finalizer",
			"configmaps default/foreign !Foreign",
			"configmaps default/left Delete",
			"configmaps default/left Release",
			"configmaps default/refused Finalizer",
			"configmaps default/refused !Refused",
			"configmaps shop/b Finalizer",
			"configmaps shop Namespace",
			"configmaps shop/b Create",
			"deployments default/web Status",
		}, p.diff(syncer.Options{}))
		for _, s := range []*side{p.up, p.down} {
			for _, r := range s.Requests() {
				if r.Verb != "delete" { // a deletion has dryRun in its body
					require.True(t, r.DryRun || r.Verb == "get" || r.Verb == "list" || r.Verb == "watch", "%+v", r)
				}
			}
		}
		after := [][]string{p.versions(p.up), p.versions(p.down)}
		require.Equal(t, before, after)

		// The syncer makes these writes.
		p.reset()
		p.start(syncer.Options{})
		p.rest()
		require.Equal(t, "w", field(p.down.get(configMaps, "changed"), "data", "k"))
		require.NotNil(t, p.down.get(configMaps, "b", "shop"))
		require.Nil(t, p.down.get(configMaps, "left"))
		require.Equal(t, []string{"configmaps default/foreign !Foreign"}, p.diff(syncer.Options{}))
	})
}

// versions returns the resourceVersions of the ConfigMaps that TestDiff creates, and of its Deployment.
func (p *pair) versions(s *side) (all []string) {
	for _, name := range []string{"a", "b", "changed", "deleted", "drifted", "foreign", "left", "refused", "rests"} {
		if obj := s.get(configMaps, name); obj != nil {
			all = append(all, name+" "+obj.GetResourceVersion())
		}
	}
	return append(all, s.get(deployments, "web").GetResourceVersion())
}

// Diff yields deletions above the cap as held. It yields an error for a type or an object whose requests fail, and continues.
func TestDiffOfMuch(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		p.up.numbered(30)
		p.up.create(services, "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: 80}]}}")
		p.rest()
		p.stop()
		for i := range 20 {
			p.up.delete(configMaps, fmt.Sprintf("c-%03d", i))
		}
		p.up.patch(services, "a", `{"spec":{"selector":{"app":"a"}}}`)
		count := map[string]int{}
		for _, c := range p.diff(syncer.Options{}) {
			count[c[strings.LastIndex(c, " ")+1:]]++
		}
		require.Equal(t, map[string]int{"Delete": 10, "!Held": 10, "Update": 1}, count)

		p.up.Inject(regiontest.Fault{Verb: "list", Resource: configMaps.GroupResource(), Times: -1, Do: regiontest.Refuse(http.StatusForbidden)})
		require.Equal(t, []string{"configmaps  error", "services default/a Update"}, p.diff(syncer.Options{}))
		p.up.Reset()
		p.down.Inject(regiontest.Fault{Verb: "patch", Resource: services.GroupResource(), Times: -1, Do: regiontest.Refuse(http.StatusInternalServerError)})
		require.Contains(t, p.diff(syncer.Options{}), "services default/a error")

		p.down.Partition(true)
		begun := time.Now()
		require.Len(t, p.diff(syncer.Options{}), 1)
		require.Less(t, time.Since(begun), time.Minute)
		p.down.Partition(false)

		// The caller can end the iteration early.
		s, err := syncer.New(p.up.api, p.down.api, syncer.Options{Target: target})
		require.NoError(t, err)
		for _, err := range s.Diff(t.Context()) {
			require.NoError(t, err)
			break
		}
	})
}

// If the downstream objects that Upsync would bring up cannot be listed, Diff yields an error for their type.
func TestDiffOfWhatIsNotListed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, upsyncAll)
		p.down.create(widgets, born)
		p.stop()
		p.down.Inject(regiontest.Fault{Verb: "list", Resource: widgets.GroupResource(), Skip: 1, Times: -1, Do: regiontest.Hang()})
		require.Contains(t, p.diff(upsyncAll), "widgets  error")
	})
}

// If a cache becomes stale while Diff runs, and stays stale, Diff yields an error, so its caller does not take the
// result for complete. If the cache becomes fresh again, Diff yields all changes.
func TestDiffWhileACopyIsNotFresh(t *testing.T) {
	opts := syncer.Options{Target: target, Types: only(configMaps.GroupResource())}
	five := func(t *testing.T) *pair {
		p := newPair(t, opts)
		p.up.numbered(5)
		p.rest()
		p.stop()
		for i := range 5 {
			p.up.patch(configMaps, fmt.Sprintf("c-%03d", i), `{"data":{"k":"w"}}`)
		}
		return p
	}
	// told returns the changes and errors that Diff yields. It calls the func after as soon as it has the first
	// change.
	told := func(p *pair, after func()) (changes []string, errs []error) {
		s, err := syncer.New(p.up.api, p.down.api, opts)
		require.NoError(p.t, err)
		for c, err := range s.Diff(p.t.Context()) {
			if err != nil {
				errs = append(errs, err)
				continue
			}
			changes = append(changes, c.Object.Name+" "+string(c.Write))
			if len(changes) == 1 {
				after()
			}
		}
		return changes, errs
	}
	t.Run("until the end", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			p := five(t)
			changes, errs := told(p, func() {
				p.down.Partition(true)
				time.Sleep(time.Minute)
			})
			require.Equal(t, []string{"c-000 Update"}, changes)
			require.Len(t, errs, 1)
			require.ErrorContains(t, errs[0], "syncer: diff configmaps: a cache is stale: downstream: failed to list configmaps")
		})
	})
	t.Run("for a while", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			p := five(t)
			changes, errs := told(p, func() {
				p.down.Partition(true)
				time.Sleep(time.Minute)
				p.down.Partition(false)
				time.Sleep(time.Minute)
			})
			require.Equal(t, []string{"c-000 Update", "c-001 Update", "c-002 Update", "c-003 Update", "c-004 Update"}, changes)
			require.Empty(t, errs)
		})
	})
	t.Run("from the beginning", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			p := five(t)
			p.up.Inject(regiontest.Fault{Verb: "watch", Resource: configMaps.GroupResource(), Times: -1, Do: regiontest.Refuse(http.StatusInternalServerError)})
			p.down.Inject(regiontest.Fault{Verb: "list", Resource: configMaps.GroupResource(), Do: regiontest.Delay(time.Second)})
			changes, errs := told(p, func() {})
			require.Empty(t, changes)
			require.Len(t, errs, 1)
			require.ErrorContains(t, errs[0], "upstream: failed to watch configmaps")
		})
	})
}
