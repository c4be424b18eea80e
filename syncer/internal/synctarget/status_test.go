// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package synctarget_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/syncer/internal/synctarget"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// WriteStatus changes the status of the SyncTarget that was read. If the SyncTarget has changed since then,
// WriteStatus returns a Conflict and changes nothing.
func TestWriteStatus(t *testing.T) {
	crd, err := config.CRD("synctargets.workload.kcp.io")
	require.NoError(t, err)
	types, err := regiontest.Compile(crd)
	require.NoError(t, err)
	server := regiontest.NewServer(regiontest.Options{Definitions: types})
	t.Cleanup(server.Close)
	api, err := region.APIFor(server.Config())
	require.NoError(t, err)
	decode := func(obj *unstructured.Unstructured, err error) *v1alpha1.SyncTarget {
		t.Helper()
		require.NoError(t, err)
		target := &v1alpha1.SyncTarget{}
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, target))
		return target
	}
	client := api.Dynamic().Resource(synctarget.Resource)
	read := decode(client.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "SyncTarget", "metadata": map[string]any{"name": "a"},
	}}, metav1.CreateOptions{}))
	stop := func(_ *v1alpha1.SyncTargetStatus, set synctarget.SetCondition) {
		set(v1alpha1.SyncTargetConditionReady, metav1.ConditionFalse, v1alpha1.SyncTargetReasonStopped, "it ends")
	}
	require.NoError(t, synctarget.WriteStatus(t.Context(), api, read, stop))
	now := decode(client.Get(t.Context(), "a", metav1.GetOptions{}))
	require.True(t, synctarget.HasEnded(now))
	require.False(t, synctarget.HasEnded(read))

	err = synctarget.WriteStatus(t.Context(), api, read, func(_ *v1alpha1.SyncTargetStatus, set synctarget.SetCondition) {
		set(v1alpha1.SyncTargetConditionReady, metav1.ConditionTrue, v1alpha1.SyncTargetReasonSyncing, "")
	})
	require.True(t, apierrors.IsConflict(err), "%v", err)
	require.ErrorContains(t, err, "write the status of SyncTarget a: ")
	require.Equal(t, now, decode(client.Get(t.Context(), "a", metav1.GetOptions{})))
}

func TestBrief(t *testing.T) {
	var all []string
	for i := range 10 {
		all = append(all, fmt.Sprint(i))
	}
	require.Equal(t, "0, 1, 2, 3, 4, 5, 6, 7, 8, 9", synctarget.Brief(all))
	require.True(t, strings.HasSuffix(synctarget.Brief(append(all, "x", "y")), ", 9 and 2 more"))
}
