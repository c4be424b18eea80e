// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package join_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/syncer/join"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

var (
	reviews  = schema.GroupVersionResource{Group: "authentication.k8s.io", Version: "v1", Resource: "selfsubjectreviews"}
	accounts = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	targets  = v1alpha1.GroupVersion.WithResource("synctargets")
)

func TestJoin(t *testing.T) {
	planetest.SkipShort(t)
	w := newWorld(t)
	w.target("edge")
	w.target("other")
	admin := planetest.Dynamic(t, w.upstream.Config())

	// A cluster joins, and then renews its certificate without the token.
	token := w.token("edge")
	r, file := w.renewer("edge", token)
	_, err := r.Step(t.Context())
	require.NoError(t, err)
	name, groups := w.user(file)
	require.Equal(t, join.User("edge"), name)
	require.Contains(t, groups, join.Group)
	first := leaf(t, file)
	require.Less(t, time.Until(first.NotAfter), 11*time.Minute)
	renewed, err := join.NewRenewer(join.RenewerOptions{Target: "edge", File: file, Lifetime: 10 * time.Minute, RenewAt: 0.34, Poll: 100 * time.Millisecond})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := renewed.Step(t.Context())
		require.NoError(t, err)
		return leaf(t, file).SerialNumber.Cmp(first.SerialNumber) != 0
	}, time.Minute, 100*time.Millisecond, "the certificate is renewed")
	name, _ = w.user(file)
	require.Equal(t, join.User("edge"), name)

	// The token is used up.
	second, _ := w.renewer("edge", token)
	_, err = second.Step(t.Context())
	require.ErrorIs(t, err, join.ErrDenied)
	require.ErrorContains(t, err, "was used before")
	e := w.reported("was used before")
	require.Equal(t, "edge", e.Target)
	require.NotEmpty(t, e.TargetUID)
	require.Contains(t, e.Requester, "system:serviceaccount:atoll-join:join-")

	// A token is for one name, and does nothing else.
	token = w.token("edge")
	foreign, _ := w.renewer("other", token)
	_, err = foreign.Step(t.Context())
	require.ErrorIs(t, err, join.ErrDenied)
	w.reported(`asks for the user "atoll:cluster:other"`)
	text := read(t, token)
	for _, gvr := range []schema.GroupVersionResource{targets, accounts, {Version: "v1", Resource: "secrets"}} {
		_, err = w.api(text).Dynamic().Resource(gvr).Namespace(join.Namespace).List(t.Context(), metav1.ListOptions{})
		require.True(t, apierrors.IsForbidden(err), "%s: %v", gvr.Resource, err)
	}

	// A cluster does not get the certificate of another one: the certificate of edge is used in place of a token.
	stolen, _ := w.renewer("other", file)
	_, err = stolen.Step(t.Context())
	require.ErrorIs(t, err, join.ErrDenied)
	require.Eventually(t, func() bool { return w.lastDenied().Requester == join.User("edge") }, time.Minute, 10*time.Millisecond)

	// Of two clusters that use one token at once, one joins.
	token = w.token("edge")
	var wg sync.WaitGroup
	errs := make([]error, 2)
	for i := range errs {
		racer, _ := w.renewer("edge", token)
		wg.Go(func() { _, errs[i] = racer.Step(t.Context()) })
	}
	wg.Wait()
	require.NotEqual(t, errs[0] == nil, errs[1] == nil, "%v", errs)
	require.ErrorIs(t, errors.Join(errs...), join.ErrDenied)

	// A late token is refused, and one that was never used is reported.
	token = w.token("edge")
	list, err := admin.Resource(accounts).Namespace(join.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "join.atoll.dev/token"})
	require.NoError(t, err)
	for _, account := range list.Items {
		_, err = admin.Resource(accounts).Namespace(join.Namespace).Patch(t.Context(), account.GetName(), types.MergePatchType,
			[]byte(`{"metadata":{"annotations":{"join.atoll.dev/expires":"2026-01-01T00:00:00Z"}}}`), metav1.PatchOptions{})
		require.NoError(t, err)
	}
	planetest.Eventually(t, time.Minute, "late tokens are deleted", func(ctx context.Context) error {
		list, err := admin.Resource(accounts).Namespace(join.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "join.atoll.dev/token"})
		if err == nil && len(list.Items) > 0 {
			err = errors.New(list.Items[0].GetName())
		}
		return err
	})
	late, _ := w.renewer("edge", token)
	planetest.Eventually(t, time.Minute, "the token is refused", func(ctx context.Context) error { // an API server caches tokens for ten seconds
		_, err := late.Step(ctx)
		if err == nil || !apierrors.IsUnauthorized(errors.Unwrap(err)) && !errors.Is(err, join.ErrDenied) {
			return errors.Join(errors.New("it is not refused"), err)
		}
		return nil
	})
	w.mu.Lock()
	require.NotEmpty(t, w.expired)
	w.mu.Unlock()

	// After its SyncTarget is gone, a cluster gets no further certificate.
	gone, file := w.renewer("other", w.token("other"))
	_, err = gone.Step(t.Context())
	require.NoError(t, err)
	require.NoError(t, admin.Resource(targets).Delete(t.Context(), "other", metav1.DeleteOptions{}))
	require.Eventually(t, func() bool {
		_, err = gone.Step(t.Context())
		return err != nil
	}, time.Minute, 100*time.Millisecond, "the renewal is denied")
	require.ErrorIs(t, err, join.ErrDenied)
	w.reported("the SyncTarget other does not exist")
	name, _ = w.user(file)
	require.Equal(t, join.User("other"), name, "the present certificate works until it expires")
}
