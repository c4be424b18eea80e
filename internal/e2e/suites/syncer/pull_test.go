// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/internal/rights"
	"github.com/atoll-dev/atoll/syncer/targets"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// installed maps each kind of the installed objects to its resource.
var installed = map[string]schema.GroupVersionResource{
	"Namespace": namespaces, "ServiceAccount": gvr("", "v1", "serviceaccounts"), "Secret": gvr("", "v1", "secrets"), "Deployment": deployments,
	"ClusterRole":        gvr("rbac.authorization.k8s.io", "v1", "clusterroles"),
	"ClusterRoleBinding": gvr("rbac.authorization.k8s.io", "v1", "clusterrolebindings"),
}

// An API server accepts each manifest unchanged, with all its fields.
func TestManifestsAreAccepted(t *testing.T) {
	down := newSide(t, planetest.SharedPods(t, 1)[0], "")
	all, err := targets.Manifests(targets.Install{Target: "dry-run", Upstream: "u", Kubeconfig: []byte("k"), Image: "i", Unscheduled: time.Minute})
	require.NoError(t, err)
	apply := func(obj *unstructured.Unstructured, dry ...string) {
		data, err := json.Marshal(obj)
		require.NoError(t, err)
		_, err = down.api.Dynamic().Resource(installed[obj.GetKind()]).Namespace(obj.GetNamespace()).Patch(t.Context(), obj.GetName(), types.ApplyPatchType, data,
			metav1.PatchOptions{FieldManager: "test", FieldValidation: metav1.FieldValidationStrict, DryRun: dry})
		require.NoError(t, err, obj.GetKind())
	}
	apply(all[0]) // the others cannot be tried without the namespace
	for _, obj := range all {
		apply(obj, metav1.DryRunAll)
	}
	require.NoError(t, down.api.Dynamic().Resource(namespaces).Delete(t.Context(), all[0].GetName(), metav1.DeleteOptions{}))
	gone(t, down, namespaces, "", all[0].GetName())
}

// A user with exactly the rights of rights.Sync installs the syncer. The test runs the program of
// the installed Deployment, with the arguments, the token and the rights of the Deployment. The
// syncer becomes ready and syncs. After the SyncTarget is deleted, the installation and the
// finalizers of the upstream objects are gone, and the downstream objects stay.
func TestPull(t *testing.T) {
	pull(t, "pulled", func(f *fleet, name string) []byte {
		return runAs(t, f.up.plane, "syncer", rights.Syncing{Target: name, Types: few})
	})
}

// pull tests a syncer with the upstream kubeconfig that reach returns.
func pull(t *testing.T, name string, reach func(f *fleet, name string) []byte) {
	t.Helper()
	var upstream atomic.Pointer[[]byte]
	f := newFleet(t, targets.Pull, func(context.Context, *v1alpha1.SyncTarget) (targets.Install, error) {
		return targets.Install{Kubeconfig: *upstream.Load(), Image: "atoll-syncer:dev", Types: few, Unscheduled: time.Second}, nil
	})
	upstream.Store(new(reach(f, name)))
	f.secret("k", runAs(t, f.down.plane, "targets", rights.Syncing{Downstream: true, Mode: targets.Pull, Types: few, Unscheduled: true}))
	f.register(name, fmt.Sprintf("{kubeconfigSecret: {name: k, namespace: %s}}", f.up.namespace))
	f.says(name, "Installed", "True", "Installed") // its Pods run, but not yet the program
	f.says(name, "Ready", "Unknown", "Pending")

	all, err := f.down.api.Dynamic().Resource(namespaces).List(t.Context(), metav1.ListOptions{LabelSelector: targets.InstallationLabel})
	require.NoError(t, err)
	require.Len(t, all.Items, 1)
	home := all.Items[0].GetName()
	bindings := f.down.api.Dynamic().Resource(installed["ClusterRoleBinding"])
	require.NoError(t, bindings.Delete(t.Context(), home, metav1.DeleteOptions{}))
	planetest.Eventually(t, long, "the binding is there again", func(ctx context.Context) error {
		_, err := bindings.Get(ctx, home, metav1.GetOptions{})
		return err
	})

	stop := f.runInstalled(home)
	f.create(name, configMaps, fmt.Sprintf(aConfigMap, "a"))
	f.create(name, deployments, fmt.Sprintf(aDeployment, "a"))
	f.create(name, deployments, strings.Replace(fmt.Sprintf(aDeployment, "stuck"), "containers:", "nodeSelector: {there-is: none}, containers:", 1))
	f.down.has(configMaps, "a", map[string]string{"data.k": "v"})
	f.up.has(deployments, "a", map[string]string{"status.readyReplicas": "1", "status.observedGeneration": "1"})
	f.says(name, "Ready", "True", "Syncing")
	f.says(name, "Installed", "True", "Installed")
	f.up.global().has(syncTargets, name, map[string]string{"status.capacity.pods": "1M"}) // the capacity of KWOK's node
	unscheduled := func(ctx context.Context) (string, error) {
		stuck, err := f.up.get(ctx, deployments, "stuck")
		if err != nil {
			return "", err
		}
		return stuck.GetAnnotations()[v1alpha1.UnscheduledAnnotationPrefix+name], nil
	}
	planetest.Eventually(t, long, "a pod finds no node", func(ctx context.Context) error {
		text, err := unscheduled(ctx)
		if err == nil && !strings.HasPrefix(text, `{"pods":1,"message":"0/1 nodes are available: `) {
			err = fmt.Errorf("the annotation is %q", text)
		}
		return err
	})

	f.delete(name)
	gone(t, f.up, syncTargets, "", name)
	for _, gvr := range []schema.GroupVersionResource{namespaces, installed["ClusterRole"], installed["ClusterRoleBinding"]} {
		gone(t, f.down, gvr, "", home)
	}
	for _, gvr := range []schema.GroupVersionResource{configMaps, deployments} {
		f.up.has(gvr, "a", map[string]string{"metadata.finalizers": ""})
		f.up.delete(gvr, "a")
		f.up.lacks(gvr, "a") // no finalizer was added again
		f.down.has(gvr, "a", nil)
	}
	text, err := unscheduled(t.Context())
	require.NoError(t, err)
	require.Empty(t, text, "the annotation must be removed")
	stop()
}

// runInstalled runs the program of the Deployment in a downstream namespace, as a process with a
// token of its ServiceAccount, until the returned func is called.
func (f *fleet) runInstalled(namespace string) (stop func()) {
	f.t.Helper()
	path := filepath.Join(f.t.TempDir(), "syncer")
	build := exec.CommandContext(f.t.Context(), "go", "build", "-o", path, "./examples/syncer")
	build.Dir = "../../../.."
	out, err := build.CombinedOutput()
	require.NoError(f.t, err, "%s", out)

	get := func(kind, name string) *unstructured.Unstructured {
		f.t.Helper()
		obj, err := f.down.api.Dynamic().Resource(installed[kind]).Namespace(namespace).Get(f.t.Context(), name, metav1.GetOptions{})
		require.NoError(f.t, err)
		return obj
	}
	deployment := get("Deployment", "syncer")
	account, _, _ := unstructured.NestedString(deployment.Object, "spec", "template", "spec", "serviceAccountName")
	containers, _, err := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	require.NoError(f.t, err)
	args, _, err := unstructured.NestedStringSlice(containers[0].(map[string]any), "args")
	require.NoError(f.t, err)
	encoded, _, _ := unstructured.NestedString(get("Secret", "upstream").Object, "data", "kubeconfig")
	upstream, err := base64.StdEncoding.DecodeString(encoded)
	require.NoError(f.t, err)
	for i, arg := range args {
		args[i] = strings.Replace(arg, targets.UpstreamKubeconfig, planetest.WriteKubeconfig(f.t, "upstream", upstream), 1)
	}
	kubeconfig, err := f.down.plane.ServiceAccountKubeconfig(f.t.Context(), namespace, account)
	require.NoError(f.t, err)
	args = slices.Concat(args, []string{"-downstream=" + planetest.WriteKubeconfig(f.t, "downstream", kubeconfig), "-discovery=2s"})

	log := &output{}
	cmd := exec.CommandContext(context.WithoutCancel(f.t.Context()), path, args...)
	cmd.Stdout, cmd.Stderr = log, log
	require.NoError(f.t, cmd.Start())
	stop = sync.OnceFunc(func() {
		require.NoError(f.t, cmd.Process.Signal(syscall.SIGTERM))
		require.NoError(f.t, cmd.Wait(), "%s", log)
	})
	f.t.Cleanup(func() {
		stop()
		if f.t.Failed() {
			f.t.Logf("the syncer:\n%s", log)
		}
	})
	return stop
}

// output collects the output of a process, for concurrent readers.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
