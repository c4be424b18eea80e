// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package skew_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/internal/e2e/ctltest"
	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
)

// passes is the number of rounds after which the loops of both releases must have stopped writing,
// and the number of further rounds in which the test watches them.
const passes = 3

// rest runs the loops of both releases, and requires that they stop writing after a few rounds.
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
	w.deleteHome()
	for _, l := range both {
		l.stop()
	}
	w.clean()
}

// deleteHome deletes the home of the Account that contains all ServiceClusters. The loops of the
// first release then delete its replicas, and the loops of the present release restore them. Moving
// the home ends this conflict.
func (w *world) deleteHome() {
	t := w.t
	accounts := map[string]ctltest.Object{}
	for _, o := range w.held(ctltest.Accounts, "", w.acme) {
		accounts[o.Plane] = o
	}
	var from, heir *plane.Plane
	for _, p := range w.core {
		if home(accounts[p.Name()]) == p.Name() {
			from = p
		} else {
			heir = p
		}
	}
	require.NotNil(t, from)
	require.NoError(t, planetest.Dynamic(t, from.Config()).Resource(ctltest.Accounts).Delete(t.Context(), w.acme, metav1.DeleteOptions{}))
	replica := planetest.Dynamic(t, heir.Config()).Resource(ctltest.Accounts)
	planetest.Eventually(t, time.Minute, "the first release deletes the replica", func(ctx context.Context) error {
		switch o, err := replica.Get(ctx, w.acme, metav1.GetOptions{}); {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		case string(o.GetUID()) == accounts[heir.Name()].UID:
			return errors.New("it is still the same")
		}
		return nil
	})
	planetest.Eventually(t, time.Minute, "the home moves", func(context.Context) error {
		if moved := w.present.Shell("mover", w.core...).End(t, "account", "move", w.acme, "--to", heir.Name()); moved.Code != ctltest.Done {
			return errors.New(moved.String()) // the first release had deleted the replica again
		}
		return nil
	})
	planetest.Eventually(t, time.Minute, "the Account is in effect everywhere", func(context.Context) error {
		objects := w.held(ctltest.Accounts, "", w.acme)
		for _, o := range objects {
			if o.Stage != "Active" || o.Raw.GetDeletionTimestamp() != nil || home(o) != heir.Name() {
				return fmt.Errorf("%v", objects)
			}
		}
		if len(objects) != len(w.core) {
			return fmt.Errorf("%v", objects)
		}
		return nil
	})
	require.Equal(t, state("Tenant"), w.accountAt(w.acme))
	require.Equal(t, state(w.core[0].Name()), w.clusterAt("kept"))
}

// loops is a process that continuously sweeps.
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

// await waits for the end of a round.
func (l *loops) await() {
	l.w.t.Helper()
	require.True(l.w.t, l.says.Scan(), "the loops have ended: %v", l.says.Err())
}

func (l *loops) stop() {
	l.w.t.Helper()
	require.NoError(l.w.t, l.cmd.Process.Signal(os.Interrupt))
	for l.says.Scan() { // read the rest, so that no write of the process blocks
	}
	require.NoError(l.w.t, l.cmd.Wait())
}

// versions returns the versions of the objects in the members, of the kinds that the two releases
// write. A PeerSet counts without its metadata, notes and epoch, because the present release writes
// notes once a minute.
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
