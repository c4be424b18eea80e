// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/internal/loop"
)

// An Account is not removed while its namespace in a peer contains a ServiceCluster or a
// RegionClaim: this object would be deleted with the namespace, or stay in a namespace without an
// Account.
func TestAnAccountStaysAsLongAsItHoldsSomething(t *testing.T) {
	t.Parallel()
	for resource, kind := range map[schema.GroupVersionResource]string{
		fanout.ServiceClusters().Resource: "ServiceCluster",
		claimsResource:                    "RegionClaim",
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ring, c := newRing(t)
				_, err := c.Add(t.Context(), newAccount("acme", []any{"Provider"}), fanout.AddOptions{Target: "eu-west"})
				require.NoError(t, err)
				held := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
				held.SetGroupVersionKind(resource.GroupVersion().WithKind(kind))
				held.SetName("eu-west-1")
				client := connTo(t, ring, "us-east").Dynamic().Resource(resource).Namespace("acme")
				_, err = client.Create(t.Context(), held, metav1.CreateOptions{})
				require.NoError(t, err)

				_, err = c.Remove(t.Context(), Kind().GroupKind(), loop.ParseKey("acme"), fanout.RemoveOptions{})
				var occupied *fanout.OccupiedError
				require.ErrorAs(t, err, &occupied)
				require.ErrorContains(t, err, "eu-west-1")
				for _, peer := range peerNames {
					require.NotNil(t, accountIn(t, connTo(t, ring, peer), "acme"), "it stays in %s", peer)
				}
				_, err = client.Get(t.Context(), "eu-west-1", metav1.GetOptions{})
				require.NoError(t, err)

				require.NoError(t, client.Delete(t.Context(), "eu-west-1", metav1.DeleteOptions{}))
				_, err = c.Remove(t.Context(), Kind().GroupKind(), loop.ParseKey("acme"), fanout.RemoveOptions{})
				require.NoError(t, err)
				for _, peer := range peerNames {
					require.Nil(t, accountIn(t, connTo(t, ring, peer), "acme"))
				}
			})
		})
	}
}
