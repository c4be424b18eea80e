// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regiontest_test

import (
	"context"
	"net/http"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/region/regiontest"
)

// newWidgets returns a server and a client of its widgets. It may be called in a bubble of
// testing/synctest.
func newWidgets(t *testing.T) (*regiontest.Server, dynamic.ResourceInterface) {
	t.Helper()
	s := regiontest.NewServer(regiontest.Options{CRDs: []*apiextensionsv1.CustomResourceDefinition{widgetCRD()}})
	t.Cleanup(s.Close)
	client, err := dynamic.NewForConfig(s.Config())
	require.NoError(t, err)
	return s, client.Resource(widgets).Namespace("default")
}

func exists(t *testing.T, w dynamic.ResourceInterface, name string) bool {
	t.Helper()
	_, err := w.Get(t.Context(), name, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		require.NoError(t, err)
	}
	return err == nil
}

func TestFaults(t *testing.T) {
	for name, test := range map[string]struct {
		do      regiontest.Action
		check   func(t *testing.T, err error)
		applied bool // the object exists when the caller has its response
		later   bool // the object exists a minute later
	}{
		"Refuse": {regiontest.Refuse(http.StatusServiceUnavailable), func(t *testing.T, err error) {
			t.Helper()
			require.True(t, apierrors.IsServiceUnavailable(err), "%v", err)
		}, false, false},
		"Refuse with 401": {regiontest.Refuse(http.StatusUnauthorized), func(t *testing.T, err error) {
			t.Helper()
			require.True(t, apierrors.IsUnauthorized(err), "%v", err)
		}, false, false},
		"Refuse with Retry-After": {regiontest.Refuse(http.StatusTooManyRequests, 3*time.Second), func(t *testing.T, err error) {
			t.Helper()
			require.NoError(t, err, "client-go tries again after a 429")
		}, true, true},
		"Delay":       {regiontest.Delay(time.Second), func(t *testing.T, err error) { t.Helper(); require.NoError(t, err) }, true, true},
		"DropRequest": {regiontest.DropRequest(), isReset, false, false},
		"DropReply":   {regiontest.DropReply(), isReset, true, true},
		"ApplyLate": {regiontest.ApplyLate(30 * time.Second), func(t *testing.T, err error) {
			t.Helper()
			require.True(t, apierrors.IsTimeout(err), "%v", err)
		}, false, true},
		"Hang": {regiontest.Hang(), func(t *testing.T, err error) {
			t.Helper()
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}, false, false},
		"Crash":      {regiontest.Crash(func() {}), isReset, false, false},
		"CrashAfter": {regiontest.CrashAfter(func() {}), isReset, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, w := newWidgets(t)
				s.Inject(regiontest.Fault{Verb: "create", Resource: widgets.GroupResource(), Do: test.do})
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				_, err := w.Create(ctx, widget("a", 1), metav1.CreateOptions{})
				test.check(t, err)
				require.Equal(t, test.applied, exists(t, w, "a"))
				time.Sleep(time.Minute)
				require.Equal(t, test.later, exists(t, w, "a"))
			})
		})
	}
}

func isReset(t *testing.T, err error) {
	t.Helper()
	require.ErrorIs(t, err, syscall.ECONNRESET)
}

func TestFaultsMatchInOrder(t *testing.T) {
	s, w := newWidgets(t)
	s.Inject(
		regiontest.Fault{Verb: "create", Skip: 1, Times: 2, Name: "", Do: regiontest.Refuse(http.StatusForbidden)},
		regiontest.Fault{Verb: "get", Name: "b", Times: -1, Do: regiontest.Refuse(http.StatusInternalServerError)},
		regiontest.Fault{Resource: schema.GroupResource{Resource: "secrets"}, Do: regiontest.DropRequest()},
	)
	var codes []bool
	for _, name := range []string{"a", "b", "c", "d"} {
		_, err := w.Create(t.Context(), widget(name, 1), metav1.CreateOptions{})
		codes = append(codes, apierrors.IsForbidden(err))
	}
	require.Equal(t, []bool{false, true, true, false}, codes)
	for range 3 {
		_, err := w.Get(t.Context(), "b", metav1.GetOptions{})
		require.True(t, apierrors.IsInternalError(err), "%v", err)
	}
	require.True(t, exists(t, w, "a"))
	s.Reset()
	require.False(t, exists(t, w, "b"))
	require.Len(t, s.Requests(), 1)
}

func TestGone(t *testing.T) {
	s, w := newWidgets(t)
	s.Inject(regiontest.Fault{Verb: "list", Do: regiontest.Gone()}, regiontest.Fault{Verb: "watch", Do: regiontest.Gone()})
	_, err := w.List(t.Context(), metav1.ListOptions{})
	require.True(t, apierrors.IsResourceExpired(err), "%v", err)
	events, err := w.Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	defer events.Stop()
	require.True(t, apierrors.IsResourceExpired(apierrors.FromObject((<-events.ResultChan()).Object)))
}

func TestPartitionCutsRunningWatches(t *testing.T) {
	s, w := newWidgets(t)
	events, err := w.Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	defer events.Stop()
	s.Partition(true)
	for range events.ResultChan() { // until it is closed
	}
	_, err = w.Create(t.Context(), widget("a", 1), metav1.CreateOptions{})
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	s.Partition(false)
	require.False(t, exists(t, w, "a"))
}

func TestCompactEndsWatchesFromThePast(t *testing.T) {
	s, w := newWidgets(t)
	list, err := w.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	_, err = w.Create(t.Context(), widget("a", 1), metav1.CreateOptions{})
	require.NoError(t, err)
	s.Compact()
	events, err := w.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	require.NoError(t, err)
	defer events.Stop()
	require.True(t, apierrors.IsResourceExpired(apierrors.FromObject((<-events.ResultChan()).Object)))
}

func TestEventsBoundsTheHistory(t *testing.T) {
	s := regiontest.NewServer(regiontest.Options{Events: 3, CRDs: []*apiextensionsv1.CustomResourceDefinition{widgetCRD()}})
	t.Cleanup(s.Close)
	client, err := dynamic.NewForConfig(s.Config())
	require.NoError(t, err)
	w := client.Resource(widgets).Namespace("default")
	list, err := w.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for i := range 10 {
		_, err := w.Create(t.Context(), widget(string(rune('a'+i)), 1), metav1.CreateOptions{})
		require.NoError(t, err)
	}
	events, err := w.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	require.NoError(t, err)
	defer events.Stop()
	require.True(t, apierrors.IsResourceExpired(apierrors.FromObject((<-events.ResultChan()).Object)))
}

func TestLoadGoesBack(t *testing.T) {
	s, w := newWidgets(t)
	before, err := w.Create(t.Context(), widget("a", 1), metav1.CreateOptions{})
	require.NoError(t, err)
	saved := s.Save()
	_, err = w.Create(t.Context(), widget("b", 1), metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, w.Delete(t.Context(), "a", metav1.DeleteOptions{}))
	require.NoError(t, s.Load(saved))
	require.False(t, exists(t, w, "b"))
	after, err := w.Get(t.Context(), "a", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, before, after)
	again, err := w.Create(t.Context(), widget("c", 1), metav1.CreateOptions{})
	require.NoError(t, err, "the types are served after a Load")
	objects, err := s.Objects(widgets.GroupResource())
	require.NoError(t, err)
	require.Len(t, objects, 2)
	require.NotEqual(t, before.GetResourceVersion(), again.GetResourceVersion())
}

func TestCloseFailsRequests(t *testing.T) {
	s, w := newWidgets(t)
	s.Inject(regiontest.Fault{Verb: "create", Do: regiontest.ApplyLate(time.Hour)})
	_, err := w.Create(t.Context(), widget("a", 1), metav1.CreateOptions{})
	require.True(t, apierrors.IsTimeout(err), "%v", err)
	s.Close()
	s.Close()
	_, err = w.Get(t.Context(), "a", metav1.GetOptions{})
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
}
