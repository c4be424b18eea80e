// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Controller runs a Syncer for a SyncTarget that has a kubeconfig in its spec. When the SyncTarget is deleted, its
// upstream objects lose our finalizer, and the downstream objects stay.
func TestTargetIsServedAndLetGo(t *testing.T) {
	f := newFleet(t)
	f.register(target, map[string]any{"kubeconfig": f.kubeconfig()})
	f.up.create(configMaps, a)
	f.eventually("the downstream object", func() bool { return f.down.get(configMaps, "a") != nil })
	f.says("Ready True Syncing")
	require.NotNil(t, f.controller.Syncer(target))

	require.NoError(t, f.up.client.Resource(syncTargets).Delete(t.Context(), target, metav1.DeleteOptions{}))
	f.eventually("the SyncTarget is gone", func() bool {
		_, err := f.up.client.Resource(syncTargets).Get(t.Context(), target, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	require.Empty(t, f.up.get(configMaps, "a").GetFinalizers())
	require.NotNil(t, f.down.get(configMaps, "a"))
	require.Nil(t, f.controller.Syncer(target))
	f.up.delete(configMaps, "a")
	require.Nil(t, f.up.get(configMaps, "a"))
}

// A Controller reads the kubeconfig from the Secret that the SyncTarget names, and reports a missing Secret and an
// invalid kubeconfig. A later change of the kubeconfig does not restart the Syncer.
func TestTargetOfASecret(t *testing.T) {
	f := newFleet(t)
	f.register(target, map[string]any{"kubeconfigSecret": map[string]any{"name": "k", "namespace": "default"}})
	f.says("Ready False KubeconfigInvalid")
	f.secret("nonsense")
	f.says("Ready False KubeconfigInvalid")
	f.secret(f.kubeconfig())
	f.up.create(configMaps, a)
	f.eventually("the downstream object", func() bool { return f.down.get(configMaps, "a") != nil })
	f.says("Ready True Syncing")
	before := f.controller.Syncer(target)
	f.secret(f.kubeconfig())
	f.secret("nonsense") // is not used
	f.up.patch(configMaps, "a", `{"data":{"k":"w"}}`)
	f.eventually("the change", func() bool { return field(f.down.get(configMaps, "a"), "data", "k") == "w" })
	require.Same(t, before, f.controller.Syncer(target))
}

// A kubeconfig is rejected if it has fields that targets.Options.Trust does not allow.
func TestTargetsTrust(t *testing.T) {
	f := newFleet(t)
	kubeconfig := f.kubeconfig()
	f.register(target, map[string]any{"kubeconfig": regexp.MustCompile("certificate-authority-data: .*").ReplaceAllString(kubeconfig, "insecure-skip-tls-verify: true")})
	f.says("Ready True Syncing")
	f.register("other", map[string]any{"kubeconfig": regexp.MustCompile("client-key-data: .*").ReplaceAllString(kubeconfig, "client-key: /etc/passwd")})
	f.eventually("it is refused", func() bool {
		obj, err := f.up.client.Resource(syncTargets).Get(t.Context(), "other", metav1.GetOptions{})
		require.NoError(t, err)
		return strings.Contains(asJSON(t, field(obj, "status")), "users[0].user.client-key")
	})
	require.Nil(t, f.controller.Syncer("other"))
}

// A Controller starts no Syncer for a SyncTarget without a kubeconfig, and changes nothing in it. When the SyncTarget
// gets a kubeconfig, the Controller starts a Syncer.
func TestTargetWithoutKubeconfig(t *testing.T) {
	f := newFleet(t)
	f.register(target, map[string]any{})
	f.up.create(configMaps, a)
	f.register("served", map[string]any{"kubeconfig": f.kubeconfig()})
	f.eventually("the other is served", func() bool { return f.controller.Syncer("served") != nil })
	require.Nil(t, f.controller.Syncer(target))
	require.Empty(t, f.target().Finalizers)
	require.Empty(t, f.target().Status.Conditions)
	f.patchTarget(`{"spec":{"kubeconfig":` + asJSON(t, f.kubeconfig()) + `}}`)
	f.eventually("the downstream object", func() bool { return f.down.get(configMaps, "a") != nil })
}

// A restart of the process removes no finalizer and writes nothing downstream.
func TestTargetsRestart(t *testing.T) {
	f := newFleet(t)
	f.register(target, map[string]any{"kubeconfig": f.kubeconfig()})
	f.up.create(configMaps, a)
	f.eventually("the downstream object", func() bool { return f.down.get(configMaps, "a") != nil })
	f.stop()
	require.NotNil(t, f.down.get(configMaps, "a"))
	require.NotEmpty(t, f.up.get(configMaps, "a").GetFinalizers())
	f.down.Reset()
	f.start(t)
	f.up.patch(configMaps, "a", `{"data":{"k":"w"}}`)
	f.eventually("the change", func() bool { return field(f.down.get(configMaps, "a"), "data", "k") == "w" })
	require.Equal(t, []string{"patch configmaps a"}, f.down.writes())
}
