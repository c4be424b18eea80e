// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/account/v1alpha1"
)

func TestDerive(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		ns        namespace
		phase     v1alpha1.AccountPhase
		ready     metav1.ConditionStatus
		namespace metav1.ConditionStatus
		reason    string
	}{
		"made":        {namespace{name: "acme", ours: true}, v1alpha1.AccountReady, metav1.ConditionTrue, metav1.ConditionTrue, "Owned"},
		"shared":      {namespace{name: "acme"}, v1alpha1.AccountReady, metav1.ConditionTrue, metav1.ConditionTrue, "Shared"},
		"terminating": {namespace{name: "acme", ours: true, terminating: true}, v1alpha1.AccountUnready, metav1.ConditionFalse, metav1.ConditionFalse, "Terminating"},
		"terminating and shared": {namespace{name: "acme", terminating: true}, v1alpha1.AccountUnready, metav1.ConditionFalse, metav1.ConditionFalse,
			"Terminating"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := derive(status{}, 7, test.ns, access{noNamespace: test.ns.terminating})
			require.Equal(t, int64(7), now.ObservedGeneration)
			require.Equal(t, "acme", now.Namespace.Name)
			require.Equal(t, test.phase, now.Phase)
			require.Len(t, now.Conditions, 3)
			ready := meta.FindStatusCondition(now.Conditions, ConditionReady)
			require.Equal(t, test.ready, ready.Status)
			require.Equal(t, int64(7), ready.ObservedGeneration)
			made := meta.FindStatusCondition(now.Conditions, ConditionNamespaceReady)
			require.Equal(t, test.namespace, made.Status)
			require.Equal(t, test.reason, made.Reason)
		})
	}
}

func TestDeriveOfRoles(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		granted access
		status  metav1.ConditionStatus
		reason  string
		says    string
	}{
		"complete": {access{}, metav1.ConditionTrue, "Complete", "stand in its namespace"},
		"held":     {access{noNamespace: true}, metav1.ConditionUnknown, "Pending", "once the namespace"},
		"foreign":  {access{foreign: []string{"role kubecarrier-tenant"}}, metav1.ConditionFalse, "RolesConflict", "role kubecarrier-tenant"},
		"refused":  {access{refused: errors.New("no\nway")}, metav1.ConditionFalse, "RolesRefused", "no; way"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := derive(status{}, 7, namespace{name: "acme", ours: true}, test.granted)
			roles := meta.FindStatusCondition(now.Conditions, ConditionRolesReady)
			require.Equal(t, test.status, roles.Status)
			require.Equal(t, test.reason, roles.Reason)
			require.Contains(t, roles.Message, test.says)
			require.Equal(t, test.status == metav1.ConditionTrue, now.Phase == v1alpha1.AccountReady)
			require.Equal(t, test.status, meta.FindStatusCondition(now.Conditions, ConditionReady).Status)
		})
	}
}

func TestMessagesAreBounded(t *testing.T) {
	t.Parallel()
	require.LessOrEqual(t, len(brief(strings.Repeat("ä", 5000))), longest)
	require.Equal(t, "short", brief("short"))
}

// If nothing has changed, the status must not change either, or each call would write.
func TestDeriveIsStable(t *testing.T) {
	t.Parallel()
	first := derive(status{}, 1, namespace{name: "acme", ours: true}, access{})
	long := metav1.NewTime(time.Now().Add(-time.Hour))
	for i := range first.Conditions {
		first.Conditions[i].LastTransitionTime = long
	}
	require.Equal(t, first, derive(first, 1, namespace{name: "acme", ours: true}, access{}))

	later := derive(first, 2, namespace{name: "acme", ours: true, terminating: true}, access{noNamespace: true})
	require.True(t, later.Conditions[0].LastTransitionTime.After(long.Time), "a condition that changes gets a new time")
	require.True(t, first.Conditions[0].LastTransitionTime.Equal(&long), "the former status must not be modified")
}

func TestPhaseWithoutConditions(t *testing.T) {
	t.Parallel()
	require.Equal(t, v1alpha1.AccountUnready, phase(nil))
}
