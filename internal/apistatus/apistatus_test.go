// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package apistatus

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A region may send a code that is not the code of an error, and net/http panics on some of these codes. Refuse replaces
// them by 500.
func TestRefuseWithAnyCode(t *testing.T) {
	for code, want := range map[int32]int{0: 500, 42: 500, 200: 500, 404: 404, 503: 503, 4040: 500} {
		w := httptest.NewRecorder()
		Refuse(w, &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Message: "no"}})
		require.Equal(t, want, w.Code, "of %d", code)
		require.Contains(t, w.Body.String(), fmt.Sprintf(`"code":%d`, want))
	}
}

func TestRefuse(t *testing.T) {
	w := httptest.NewRecorder()
	Refuse(w, errors.New("peer-a at 10.0.0.1"))
	require.Equal(t, 500, w.Code)
	require.NotContains(t, w.Body.String(), "peer-a", "an error that is no answer may name peers")

	w = httptest.NewRecorder()
	Refuse(w, fmt.Errorf("list: %w", apierrors.NewTooManyRequests("busy", 3)))
	require.Equal(t, 429, w.Code)
	require.Equal(t, "3", w.Header().Get("Retry-After"))
}
