// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/router"
	"github.com/atoll-dev/atoll/router/aggregate"
)

// Whatever the policy is, a list returns no objects only if at least one region has returned an empty list. If no
// region has returned a list, the list fails.
func TestAnEmptyListMeansEmpty(t *testing.T) {
	a, b := key(0), key(1)
	unserve := func(w *world, k region.Key) {
		w.servers[k].Inject(regiontest.Fault{Verb: "list", Do: regiontest.Refuse(http.StatusNotFound)})
	}
	cut := func(w *world, k region.Key) { w.servers[k].Partition(true) }
	leave := func(w *world, _ region.Key) { require.NoError(t, w.set.Put()) }
	none := func(*world, region.Key) {}
	for _, policy := range []aggregate.Policy{
		aggregate.All(), aggregate.FailFast(), aggregate.BestEffort(), aggregate.Quorum(1), aggregate.Require(), aggregate.Require(a),
	} {
		for _, test := range []struct {
			name   string
			do     [2]func(*world, region.Key)
			code   int // expected with policies other than All and FailFast; zero: the list is empty
			strict int // expected with All and FailFast
		}{
			{"both have none", [2]func(*world, region.Key){none, none}, 0, 0},
			{"neither answers", [2]func(*world, region.Key){cut, cut}, 503, 503},
			{"one does not serve the type and one does not answer", [2]func(*world, region.Key){unserve, cut}, 503, 503},
			{"one has none and one does not serve the type", [2]func(*world, region.Key){none, unserve}, 0, 0},
			{"neither serves the type", [2]func(*world, region.Key){unserve, unserve}, 404, 404},
			{"no region is known", [2]func(*world, region.Key){leave, leave}, 503, 503},
			{"one has none and one does not answer", [2]func(*world, region.Key){none, cut}, 0, 503},
		} {
			t.Run(policy.String()+": "+test.name, func(t *testing.T) {
				w := newWorld(t, 2)
				defer w.close()
				test.do[0](w, a)
				test.do[1](w, b)
				want := test.code
				if s := policy.String(); s == "all" || s == "fail fast" {
					want = test.strict
				}
				list, err := w.api(aggregate.Options{}).Reader("default", configMaps).ListAll(aggregate.WithPolicy(t.Context(), policy), metav1.ListOptions{})
				if want == 0 {
					require.NoError(t, err)
					require.Empty(t, list.Items)
					return
				}
				var status apierrors.APIStatus
				require.ErrorAs(t, err, &status)
				require.EqualValues(t, want, status.Status().Code, "%v", err)
			})
		}
	}
}

// Every page of a list reports the regions that do not contribute to it.
func TestLaterPagesReportWhatIsMissing(t *testing.T) {
	w := newWorld(t, 2)
	defer w.close()
	w.put(w.keys[0], "a", "b")
	w.servers[w.keys[1]].Partition(true)
	var warned []string
	handler := warnings(func(text string) { warned = append(warned, text) })
	reader := w.api(aggregate.Options{WarningHandler: handler}).Reader("default", configMaps)
	page, err := reader.ListAll(partial(t.Context()), metav1.ListOptions{Limit: 1})
	require.NoError(t, err)
	ctx, report := aggregate.WithReport(t.Context())
	_, err = reader.ListAll(ctx, metav1.ListOptions{Limit: 1, Continue: page.GetContinue()})
	require.NoError(t, err)
	require.False(t, report.Complete())
	require.Equal(t, []string{"region r1.loodse: Absent"}, report.Warnings())
	require.Equal(t, []string{"region r1.loodse: Unreachable", "region r1.loodse: Absent"}, warned)
}

type warnings func(text string)

func (w warnings) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) { w(text) }

// calls returns, by verb, calls that can report the named object as not found.
func calls(c dynamic.ResourceInterface, name string) map[string]func(context.Context) error {
	o := configMap(name, "1")
	return map[string]func(context.Context) error{
		"get": func(ctx context.Context) error {
			_, err := c.Get(ctx, name, metav1.GetOptions{})
			return err
		},
		"update": func(ctx context.Context) error {
			_, err := c.Update(ctx, o.DeepCopy(), metav1.UpdateOptions{})
			return err
		},
		"patch": func(ctx context.Context) error {
			_, err := c.Patch(ctx, name, types.MergePatchType, []byte(`{"data":{}}`), metav1.PatchOptions{})
			return err
		},
		"apply": func(ctx context.Context) error {
			_, err := c.Apply(ctx, name, o.DeepCopy(), metav1.ApplyOptions{FieldManager: "test"})
			return err
		},
		"delete": func(ctx context.Context) error { return c.Delete(ctx, name, metav1.DeleteOptions{}) },
	}
}

// misplaced returns a Router over one peer that does not prove to be the expected cluster: the peer answers the read
// of the cluster's identity with code. So the Router must draw no conclusion about the peer's objects.
func misplaced(t *testing.T, code int) *router.Router {
	t.Helper()
	server := regiontest.NewServer(regiontest.Options{Name: "peer"})
	t.Cleanup(server.Close)
	server.Inject(regiontest.Fault{Verb: "get", Name: "kube-system", Times: -1, Do: regiontest.Refuse(code)})
	credentials, err := region.FromConfig(server.Config())
	require.NoError(t, err)
	conn, err := region.NewConn(region.Peer{
		Name: "peer", UID: "expected", Credentials: credentials, Regions: []region.Key{key(0)},
	}, region.ConnOptions{})
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	routes, err := router.New(region.Fixed(conn), router.Options{})
	require.NoError(t, err)
	return routes
}

// The Router's own read of the cluster's identity fails with 404, 403 or 410. This status does not count as the
// region's answer to the caller: the caller gets 503.
func TestOnlyARegionsAnswerIsNotFound(t *testing.T) {
	for _, code := range []int{http.StatusNotFound, http.StatusForbidden, http.StatusGone} {
		set, err := aggregate.Regions(misplaced(t, code), router.Self(), nil)
		require.NoError(t, err)
		api, err := aggregate.New(set, aggregate.Options{})
		require.NoError(t, err)
		for _, name := range []string{"x", "x@" + key(0).String()} {
			for verb, call := range calls(api.Dynamic().Resource(configMaps).Namespace("default"), name) {
				err := call(partial(t.Context()))
				require.True(t, apierrors.IsServiceUnavailable(err), "%s %s with %d: %v", verb, name, code, err)
			}
		}
		_, err = api.Reader("", configMaps).ListAll(partial(t.Context()), metav1.ListOptions{})
		require.True(t, apierrors.IsServiceUnavailable(err), "list with %d: %v", code, err)
	}
}

// No verb reports an object as not found while a region that may have it does not answer.
func TestAnObjectThatMayBeElsewhereIsNotNotFound(t *testing.T) {
	w := newWorld(t, 3)
	defer w.close()
	w.put(w.keys[2], "x")
	w.servers[w.keys[2]].Partition(true)
	for _, policy := range []aggregate.Policy{aggregate.All(), aggregate.BestEffort(), aggregate.Quorum(1), aggregate.Require(w.keys[0])} {
		for _, name := range []string{"x", "x@" + w.keys[2].String()} {
			for verb, call := range calls(w.api(aggregate.Options{}).Dynamic().Resource(configMaps).Namespace("default"), name) {
				ctx, report := aggregate.WithReport(aggregate.WithPolicy(t.Context(), policy))
				err := call(ctx)
				require.True(t, apierrors.IsServiceUnavailable(err), "%s %s, %s: %v", verb, name, policy, err)
				require.ErrorContains(t, err, "region r2.loodse", "%s %s", verb, name)
				if name == "x" {
					require.Equal(t, []string{"region r2.loodse: Unreachable"}, report.Warnings(), "%s", verb)
				}
			}
		}
	}
}

// The Router refuses the identity in one region. The region's objects do not count as absent: a call that may concern
// them gets 503. A list with BestEffort reads the other region, which the same peer serves.
func TestARegionThatRefusesTheIdentityIsNotAbsent(t *testing.T) {
	ring := regiontest.NewRing("peer")
	defer ring.Close()
	require.NoError(t, ring.Serve("peer", key(0), key(1)))
	conn, err := ring.Conn("peer")
	require.NoError(t, err)
	_, err = conn.Dynamic().Resource(configMaps).Namespace("default").Create(t.Context(), configMap("a", "1"), metav1.CreateOptions{})
	require.NoError(t, err)
	errMap := apierrors.NewNotFound(configMaps.GroupResource(), "the directory of users")
	refuses := true
	routes, err := router.New(ring, router.Options{Map: func(k region.Key, u router.User) (router.User, error) {
		if refuses && k == key(0) {
			return router.User{}, errMap
		}
		return u, nil
	}})
	require.NoError(t, err)
	set, err := aggregate.Regions(routes, router.Impersonate(router.User{Name: "alice"}), nil)
	require.NoError(t, err)
	api, err := aggregate.New(set, aggregate.Options{})
	require.NoError(t, err)
	c := api.Dynamic().Resource(configMaps).Namespace("default")
	for _, name := range []string{"x", "x@" + key(0).String()} {
		for verb, call := range calls(c, name) {
			err := call(t.Context())
			require.True(t, apierrors.IsServiceUnavailable(err), "%s %s: %v", verb, name, err)
			require.ErrorContains(t, err, "region r0.loodse", "%s %s", verb, name)
		}
	}
	_, err = c.List(t.Context(), metav1.ListOptions{})
	require.True(t, apierrors.IsServiceUnavailable(err), "%v", err)

	ctx, report := aggregate.WithReport(t.Context())
	list, err := api.Reader("default", configMaps).ListAll(partial(ctx), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
	require.Equal(t, "r1.loodse/a", id(&list.Items[0]))
	require.False(t, report.Complete())
	require.ErrorIs(t, report.Outcomes()[0].Err, errMap)

	refuses = false
	list, err = api.Reader("default", configMaps).ListAll(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
	require.Equal(t, "r0.loodse/a", id(&list.Items[0]))
}

// Before the ring has read its source, no request gets 404. Afterwards, a request that names a region which the
// source does not list gets 404.
func TestNothingIsAbsentBeforeRegionsAreKnown(t *testing.T) {
	source, err := region.FromPeers()
	require.NoError(t, err)
	ring, err := region.NewRing(source, region.Options{})
	require.NoError(t, err)
	routes, err := router.New(ring, router.Options{})
	require.NoError(t, err)
	set, err := aggregate.Regions(routes, router.Self(), nil)
	require.NoError(t, err)
	api, err := aggregate.New(set, aggregate.Options{})
	require.NoError(t, err)
	c := api.Dynamic().Resource(configMaps).Namespace("default")
	for _, name := range []string{"x", "x@" + key(0).String()} {
		for verb, call := range calls(c, name) {
			err := call(partial(t.Context()))
			require.True(t, apierrors.IsServiceUnavailable(err), "%s %s: %v", verb, name, err)
		}
	}
	_, err = c.List(partial(t.Context()), metav1.ListOptions{})
	require.True(t, apierrors.IsServiceUnavailable(err), "%v", err)
	for _, opts := range []metav1.ListOptions{{}, initial()} {
		_, err = c.Watch(t.Context(), opts)
		require.True(t, apierrors.IsServiceUnavailable(err), "%v", err)
	}

	w := newWorld(t, 1)
	defer w.close()
	_, err = w.api(aggregate.Options{}).Dynamic().Resource(configMaps).Namespace("default").Get(t.Context(), "x@"+key(1).String(), metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}

// The Router asks its Resolver about a region that is not resolved yet. If the question fails, the region is not
// reported as not found.
func TestARegionThatIsNotYetResolved(t *testing.T) {
	ring := regiontest.NewRing("peer-a", "peer-b")
	defer ring.Close()
	require.NoError(t, ring.Serve("peer-a", key(0)))
	conn, err := ring.Conn("peer-b")
	require.NoError(t, err)
	_, err = conn.Dynamic().Resource(configMaps).Namespace("default").Create(t.Context(), configMap("x", "1"), metav1.CreateOptions{})
	require.NoError(t, err)
	silent := true
	routes, err := router.New(ring, router.Options{Negative: 1, Resolver: router.ResolverFunc(func(_ context.Context, k region.Key) (region.PeerName, error) {
		switch {
		case silent:
			return "", fmt.Errorf("no answer")
		case k == key(1):
			return "peer-b", nil
		default:
			return "", region.ErrUnknownRegion
		}
	})})
	require.NoError(t, err)
	set, err := aggregate.Regions(routes, router.Self(), nil)
	require.NoError(t, err)
	api, err := aggregate.New(set, aggregate.Options{})
	require.NoError(t, err)
	c := api.Dynamic().Resource(configMaps).Namespace("default")
	_, err = c.Get(t.Context(), "x@"+key(1).String(), metav1.GetOptions{})
	require.True(t, apierrors.IsServiceUnavailable(err), "%v", err)
	silent = false
	o, err := c.Get(t.Context(), "x@"+key(1).String(), metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "r1.loodse/x", id(o))
	_, err = c.Get(t.Context(), "x@"+key(2).String(), metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}

// If more than 20 regions fail, 20 warnings name regions and one more counts the rest. The text of an Error with a
// hostile region's message is short and has no line break.
func TestWarningsAreBounded(t *testing.T) {
	w := newWorld(t, 40)
	defer w.close()
	for _, k := range w.keys[1:] {
		w.servers[k].Partition(true)
	}
	ctx, report := aggregate.WithReport(t.Context())
	list, err := w.api(aggregate.Options{}).Reader("", configMaps, configMaps).ListAll(partial(ctx), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, report.Warnings(), 21)
	require.Equal(t, "19 more regions failed", report.Warnings()[20])
	text, _, err := unstructured.NestedString(list.Object, "metadata", "annotations", aggregate.IncompleteAnnotation)
	require.NoError(t, err)
	require.Equal(t, strings.Join(report.Warnings(), "; "), text)

	hostile := aggregate.Error{Outcome: aggregate.Outcome{
		Region: key(0), State: aggregate.Forbidden,
		Err: apierrors.NewForbidden(configMaps.GroupResource(), "x", fmt.Errorf("a\r\nSet-Cookie: b\x00%s", strings.Repeat("\u202e", 1<<20))),
	}}
	require.Less(t, len(hostile.Error()), 400)
	require.NotContains(t, hostile.Error(), "\n")
}
