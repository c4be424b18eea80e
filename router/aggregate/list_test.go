// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/router/aggregate"
)

// The pages of a list together contain exactly the objects that the regions had at the first page, in order. They
// contain none of the objects that are created between the pages.
func TestPagesAreOneList(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, 3)
		defer w.close()
		var want []string
		for _, k := range w.keys {
			for i := range rapid.IntRange(0, 6).Draw(rt, "objects of "+k.Name) {
				w.put(k, fmt.Sprintf("o%d", i))
				want = append(want, fmt.Sprintf("%s/o%d", k, i))
			}
		}
		reader := w.api(aggregate.Options{}).Reader("default", configMaps)
		opts := metav1.ListOptions{Limit: int64(rapid.IntRange(0, 9).Draw(rt, "limit"))}
		var got []string
		version := ""
		for page := 0; ; page++ {
			list, err := reader.ListAll(t.Context(), opts)
			require.NoError(rt, err)
			require.Nil(rt, list.GetRemainingItemCount())
			if opts.Limit > 0 {
				require.LessOrEqual(rt, len(list.Items), int(opts.Limit))
			}
			for i := range list.Items {
				got = append(got, id(&list.Items[i]))
			}
			if page == 0 {
				version = list.GetResourceVersion()
			}
			require.Equal(rt, version, list.GetResourceVersion(), "the version is pinned at the first page")
			if opts.Continue = list.GetContinue(); opts.Continue == "" {
				break
			}
			w.put(w.keys[page%3], fmt.Sprintf("new%d", page)) // these objects are not part of the list
			if rapid.Bool().Draw(rt, "other limit") {
				opts.Limit = int64(rapid.IntRange(0, 9).Draw(rt, "limit of the next page"))
			}
		}
		require.Empty(rt, cmp.Diff(want, got))
	})
}

func TestContinueTokensThatAreRefused(t *testing.T) {
	w := newWorld(t, 2)
	defer w.close()
	w.put(w.keys[0], "a", "b", "c")
	w.put(w.keys[1], "d")
	api := w.api(aggregate.Options{})
	reader := api.Reader("default", configMaps)
	page, err := reader.ListAll(t.Context(), metav1.ListOptions{Limit: 1})
	require.NoError(t, err)
	token := page.GetContinue()
	require.NotEmpty(t, token)
	_, err = w.api(aggregate.Options{}).Reader("default", configMaps).ListAll(t.Context(), metav1.ListOptions{Continue: token})
	require.True(t, apierrors.IsBadRequest(err), "another process: %v", err)
	for name, opts := range map[string]metav1.ListOptions{
		"garbage":           {Continue: "garbage"},
		"a version":         {Continue: page.GetResourceVersion()},
		"cut off":           {Continue: token[:len(token)-1]},
		"of another list":   {Continue: token, LabelSelector: "app=other"},
		"with a version":    {Continue: token, ResourceVersion: page.GetResourceVersion()},
		"version: garbage":  {ResourceVersion: "17"},
		"version: a cursor": {ResourceVersion: token},
	} {
		_, err := reader.ListAll(t.Context(), opts)
		require.True(t, apierrors.IsBadRequest(err), "%s: %v", name, err)
	}
	_, err = reader.Watch(metav1.ListOptions{ResourceVersion: "17"})
	require.True(t, apierrors.IsBadRequest(err))
	w.servers[w.keys[0]].Compact()
	w.put(w.keys[0], "e")
	w.servers[w.keys[0]].Compact()
	_, err = reader.ListAll(t.Context(), metav1.ListOptions{Continue: token})
	require.True(t, apierrors.IsResourceExpired(err), "%v", err)
	require.NoError(t, w.set.Put(w.members(w.keys[0])...))
	_, err = reader.ListAll(t.Context(), metav1.ListOptions{Continue: token})
	require.True(t, apierrors.IsResourceExpired(err), "a region left: %v", err)
}

// Processes with the same key accept each other's tokens.
func TestSharedKey(t *testing.T) {
	w := newWorld(t, 2)
	defer w.close()
	w.put(w.keys[0], "a", "b")
	keys, err := aggregate.NewKeyring([]byte("shared by replicas"))
	require.NoError(t, err)
	opts := aggregate.Options{Keys: keys}
	page, err := w.api(opts).Reader("default", configMaps).ListAll(t.Context(), metav1.ListOptions{Limit: 1})
	require.NoError(t, err)
	rest, err := w.api(opts).Reader("default", configMaps).ListAll(t.Context(), metav1.ListOptions{Continue: page.GetContinue()})
	require.NoError(t, err)
	require.Equal(t, "r0.loodse/b", id(&rest.Items[0]))
}

func TestPolicies(t *testing.T) {
	a, b := key(0), key(1)
	for _, test := range []struct {
		policy aggregate.Policy
		ok     bool
	}{
		{aggregate.All(), false},
		{aggregate.FailFast(), false},
		{aggregate.BestEffort(), true},
		{aggregate.Require(a), true},
		{aggregate.Require(a, b), false},
		{aggregate.Require(a, region.Key{Provider: "loodse", Name: "unknown"}), false},
		{aggregate.Quorum(1), true},
		{aggregate.Quorum(2), false},
	} {
		t.Run(test.policy.String(), func(t *testing.T) {
			w := newWorld(t, 2)
			defer w.close()
			w.put(a, "x")
			w.put(b, "y")
			w.servers[b].Partition(true)
			ctx, report := aggregate.WithReport(t.Context())
			list, err := w.api(aggregate.Options{}).Reader("", configMaps).ListAll(aggregate.WithPolicy(ctx, test.policy), metav1.ListOptions{})
			require.False(t, report.Complete())
			require.Contains(t, report.Warnings(), "region r1.loodse: Unreachable")
			if !test.ok {
				require.True(t, apierrors.IsServiceUnavailable(err), "%v", err)
				require.Contains(t, err.Error(), "region r1.loodse")
				return
			}
			require.NoError(t, err)
			require.Len(t, list.Items, 1)
			why, _, _ := unstructured.NestedString(list.Object, "metadata", "annotations", aggregate.IncompleteAnnotation)
			require.Contains(t, why, "r1.loodse")
		})
	}
}

// A region that does not answer delays a list by Options.Timeout, if that is less than Options.Answer.
func TestAHangingRegionIsNotWaitedForLongerThanItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3)
		defer w.close()
		w.servers[w.keys[1]].Inject(regiontest.Fault{Verb: "list", Do: regiontest.Hang()})
		began := time.Now()
		ctx, report := aggregate.WithReport(t.Context())
		_, err := w.api(aggregate.Options{Timeout: 2 * time.Second}).Reader("", configMaps).ListAll(partial(ctx), metav1.ListOptions{})
		require.NoError(t, err)
		require.Equal(t, 2*time.Second, time.Since(began))
		states := map[aggregate.State]int{}
		for _, o := range report.Outcomes() {
			states[o.State]++
		}
		require.Equal(t, map[aggregate.State]int{aggregate.Empty: 2, aggregate.Timeout: 1}, states)
	})
}

// If all regions return the same error, the caller gets this error. If they do not, the caller gets 503.
func TestPartialErrorsAreWhatAllSay(t *testing.T) {
	w := newWorld(t, 2)
	defer w.close()
	refuse := func(k region.Key, code int) {
		w.servers[k].Inject(regiontest.Fault{Verb: "list", Do: regiontest.Refuse(code)})
	}
	reader := w.api(aggregate.Options{}).Reader("", configMaps)
	refuse(w.keys[0], http.StatusForbidden)
	refuse(w.keys[1], http.StatusForbidden)
	_, err := reader.ListAll(t.Context(), metav1.ListOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	for _, other := range []int{http.StatusOK, http.StatusUnauthorized} {
		refuse(w.keys[0], http.StatusForbidden)
		if other != http.StatusOK {
			refuse(w.keys[1], other)
		}
		_, err = reader.ListAll(t.Context(), metav1.ListOptions{})
		require.True(t, apierrors.IsServiceUnavailable(err), "%v", err)
	}
	_, err = w.api(aggregate.Options{}).Dynamic().Resource(unserved).List(t.Context(), metav1.ListOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	require.NoError(t, w.set.Put())
	_, err = reader.ListAll(t.Context(), metav1.ListOptions{})
	require.True(t, apierrors.IsServiceUnavailable(err), "without regions, objects are not reported as absent: %v", err)
}

func TestSelectorsAndSeveralTypes(t *testing.T) {
	w := newWorld(t, 2)
	defer w.close()
	w.put(w.keys[0], "a", "b")
	w.put(w.keys[1], "a")
	api := w.api(aggregate.Options{Qualify: true})
	names := func(r *aggregate.Reader, opts metav1.ListOptions) []string {
		list, err := r.ListAll(t.Context(), opts)
		require.NoError(t, err)
		var names []string
		for _, o := range list.Items {
			names = append(names, o.GetKind()+" "+o.GetName())
		}
		return names
	}
	r := api.Reader("default", configMaps)
	require.Equal(t, []string{"ConfigMap a@r0.loodse", "ConfigMap a@r1.loodse"}, names(r, metav1.ListOptions{FieldSelector: "metadata.name=a"}))
	require.Equal(t, []string{"ConfigMap a@r1.loodse"}, names(r, metav1.ListOptions{FieldSelector: "metadata.name=a@r1.loodse"}))
	require.Empty(t, names(r, metav1.ListOptions{LabelSelector: "app!=test"}))
	require.Equal(t, []string{"ConfigMap a@r0.loodse", "ConfigMap b@r0.loodse", "ConfigMap a@r1.loodse", "Namespace default@r0.loodse", "Namespace default@r1.loodse"},
		append(names(r, metav1.ListOptions{}), names(api.Reader("", namespaces), metav1.ListOptions{FieldSelector: "metadata.name=default"})...))
	both := api.Reader("", configMaps, namespaces)
	var paged []string
	opts := metav1.ListOptions{Limit: 2}
	for {
		list, err := both.ListAll(t.Context(), opts)
		require.NoError(t, err)
		require.Equal(t, "List", list.GetKind())
		for _, o := range list.Items {
			paged = append(paged, o.GetKind()+" "+o.GetName())
		}
		if opts.Continue = list.GetContinue(); opts.Continue == "" {
			break
		}
	}
	require.Equal(t, names(both, metav1.ListOptions{}), paged)
	require.Len(t, paged, 3+2*4)
}

// Every page names the missing regions, not only the first page.
func TestEachPageSaysWhatIsMissing(t *testing.T) {
	w := newWorld(t, 3)
	defer w.close()
	w.put(w.keys[0], "a", "b", "c")
	w.put(w.keys[1], "d")
	w.put(w.keys[2], "e")
	w.servers[w.keys[1]].Inject(regiontest.Fault{Verb: "list", Do: regiontest.Refuse(http.StatusServiceUnavailable)})
	reader := w.api(aggregate.Options{}).Reader("default", configMaps)
	opts, pages := metav1.ListOptions{Limit: 2}, 0
	for ; pages == 0 || opts.Continue != ""; pages++ {
		list, err := reader.ListAll(partial(t.Context()), opts)
		require.NoError(t, err)
		text, _, err := unstructured.NestedString(list.Object, "metadata", "annotations", aggregate.IncompleteAnnotation)
		require.NoError(t, err)
		require.Contains(t, text, w.keys[1].String(), "page %d", pages)
		require.NotContains(t, text, ";", "only one region is missing")
		opts.Continue = list.GetContinue()
	}
	require.Equal(t, 2, pages)
}
