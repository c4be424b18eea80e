// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package central

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/atoll-dev/atoll/region"
	masterv1alpha1 "github.com/atoll-dev/atoll/region/master/v1alpha1"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// A cluster that was never accepted and fails is inspected about every half minute.
func TestAClusterThatFailsIsAskedEverLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "eu")
		w.servers["eu"].Inject(regiontest.Fault{Times: -1, Do: regiontest.Refuse(http.StatusServiceUnavailable)})
		w.start(PeersOptions{})
		w.register("eu")
		pass(time.Hour)
		asked := len(w.servers["eu"].Requests())
		require.Less(t, asked, 200)
		require.Greater(t, asked, 50)
	})
}

// A status for a Peer is not written to a Peer that was created later with the same name.
func TestAStatusIsForOnePeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "eu")
		w.register("eu")
		api, err := region.APIFor(w.plane.Config())
		require.NoError(t, err)
		plane := api.Dynamic().Resource(peerResource)
		old, err := plane.Get(t.Context(), "eu", metav1.GetOptions{})
		require.NoError(t, err)
		require.NoError(t, plane.Delete(t.Context(), "eu", metav1.DeleteOptions{}))
		again := old.DeepCopy()
		again.SetUID("")
		again.SetResourceVersion("")
		_, err = plane.Create(t.Context(), again, metav1.CreateOptions{})
		require.NoError(t, err)

		before := &masterv1alpha1.Peer{}
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(old.Object, before))
		p := &Peers{plane: api}
		_, err = p.write(t.Context(), &record{budget: newBudget()}, before, old, masterv1alpha1.PeerStatus{ClusterUID: "a"}, time.Now())
		require.True(t, apierrors.IsConflict(err), "%v", err)
		now, err := plane.Get(t.Context(), "eu", metav1.GetOptions{})
		require.NoError(t, err)
		require.NotContains(t, now.Object, "status")
	})
}
