// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	accountv1alpha1 "github.com/atoll-dev/atoll/account/v1alpha1"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// The Scheme must know a typed object; if it does not, the error names the type.
func TestScheme(t *testing.T) {
	r := newRing(t)
	typed := &accountv1alpha1.Account{ObjectMeta: metav1.ObjectMeta{Name: unique("acme")}}
	typed.Spec.Roles = []accountv1alpha1.AccountRole{accountv1alpha1.AccountTenant}
	_, err := coordinator(t, r, waltest.NewMemory(), fanout.Options{Scheme: runtime.NewScheme()}).Add(t.Context(), typed, fanout.AddOptions{})
	require.ErrorContains(t, err, "*v1alpha1.Account is not in Options.Scheme")
	scheme := runtime.NewScheme()
	require.NoError(t, accountv1alpha1.AddToScheme(scheme))
	op, err := coordinator(t, r, waltest.NewMemory(), fanout.Options{Scheme: scheme}).Add(t.Context(), typed, fanout.AddOptions{})
	require.NoError(t, err)
	require.Equal(t, fanout.Done, op.State)
}
