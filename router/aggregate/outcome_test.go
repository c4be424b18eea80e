// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/region"
)

// A status inside a *region.Error is the answer to another request, such as the read of the cluster's identity.
func TestStateOfAFailureOnTheWay(t *testing.T) {
	for code, want := range map[int]State{
		http.StatusNotFound: NotServed, http.StatusForbidden: Forbidden, http.StatusGone: Expired, http.StatusInternalServerError: Failed,
	} {
		status := apierrors.NewGenericServerResponse(code, "get", schema.GroupResource{Resource: "namespaces"}, "kube-system", "", 0, true)
		require.Equal(t, want, stateOf(fmt.Errorf("list: %w", status)), code)
		way := &region.Error{Region: region.Key{Provider: "loodse", Name: "r"}, Op: "identify", Err: status}
		require.Equal(t, Unreachable, stateOf(fmt.Errorf("list: %w", way)), code)
	}
	require.Equal(t, Unreachable, stateOf(errors.New("connection refused")))
}
