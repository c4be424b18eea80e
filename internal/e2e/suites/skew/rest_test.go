// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package skew_test

import (
	"bufio"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/internal/e2e/ctltest"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
)

// passes is how often the loops of both releases look at everything before they must be
// at rest, and again while they are watched.
const passes = 3

// rest runs the loops of both releases: nothing is written after a few passes.
func (w *world) rest() {
	present := filepath.Join(w.t.TempDir(), "loops")
	ctltest.Build(w.t, present, "internal", "e2e", "cmd", "loops")
	both := []*loops{w.loops(ctltest.OfFirst(w.t, "internal", "e2e", "cmd", "loops")), w.loops(present)}
	pass := func() {
		for range passes {
			for _, l := range both {
				l.await()
			}
		}
	}
	pass()
	before := w.versions()
	pass()
	after := w.versions()
	changed := []string{}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if before[name] != after[name] {
			changed = append(changed, name)
		}
	}
	require.Empty(w.t, changed, "written at rest")
	require.Len(w.t, after, len(before), "deleted at rest")
	for _, l := range both {
		l.stop()
	}
	w.clean()
}

// loops is a process that sweeps all the time.
type loops struct {
	w    *world
	cmd  *exec.Cmd
	says *bufio.Scanner
}

func (w *world) loops(path string) *loops {
	args := []string{filepath.Join(w.t.TempDir(), "loops.db")}
	for _, p := range w.core {
		args = append(args, p.Name()+"="+w.present.Kubeconfig(p))
	}
	l := &loops{w: w, cmd: exec.CommandContext(w.t.Context(), path, args...)}
	out, err := l.cmd.StdoutPipe()
	require.NoError(w.t, err)
	l.says = bufio.NewScanner(out)
	l.cmd.Stderr = os.Stderr
	require.NoError(w.t, l.cmd.Start())
	return l
}

// await waits for the end of a pass.
func (l *loops) await() {
	l.w.t.Helper()
	require.True(l.w.t, l.says.Scan(), "the loops have ended: %v", l.says.Err())
}

func (l *loops) stop() {
	l.w.t.Helper()
	require.NoError(l.w.t, l.cmd.Process.Signal(os.Interrupt))
	for l.says.Scan() { // it may be about to write
	}
	require.NoError(l.w.t, l.cmd.Wait())
}

// versions are the resource versions of all that either release writes in the members.
// Of a PeerSet the notes do not count: the present release writes them once a minute.
func (w *world) versions() map[string]string {
	w.t.Helper()
	versions := map[string]string{}
	for _, p := range w.core {
		client := planetest.Dynamic(w.t, p.Config())
		for _, resource := range []schema.GroupVersionResource{
			ctltest.ServiceClusters, ctltest.Accounts, peerSets,
			{Version: "v1", Resource: "namespaces"},
			{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"},
			{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"},
		} {
			list, err := client.Resource(resource).List(w.t.Context(), metav1.ListOptions{})
			require.NoError(w.t, err)
			for _, o := range list.Items {
				versions[p.Name()+" "+o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName()] = version(w, o)
			}
		}
	}
	return versions
}

func version(w *world, o unstructured.Unstructured) string {
	if o.GetKind() != "PeerSet" {
		return o.GetResourceVersion()
	}
	for _, field := range []string{"notes", "notedAt", "epoch"} {
		unstructured.RemoveNestedField(o.Object, "spec", field)
	}
	unstructured.RemoveNestedField(o.Object, "metadata")
	text, err := o.MarshalJSON()
	require.NoError(w.t, err)
	return string(text)
}
