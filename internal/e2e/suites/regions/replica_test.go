// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regions_test

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/e2e/planetest"
)

// replicaKilled runs two replicas in processes of their own, without other programs. It kills one
// of them, and then lets claims race. The other replica takes over the work of the killed one, and
// ends cleanly on SIGINT.
func replicaKilled(t *testing.T, w *world) {
	path := planetest.WriteKubeconfig(t, "central", kubeconfig(t, w.central))
	victim := spawn(t, path, "victim")
	heir := spawn(t, path, "heir")
	for _, identity := range []string{"victim", "heir"} {
		w.of(w.central).await(t, identity+" is a member", leases, installation, "replicas-"+identity)
	}
	planetest.Apply(t, w.central, provider("inherited"))
	require.NoError(t, victim.Process.Kill())
	w.race(t, "inherited", 4)
	w.awaitAccount(t, "inherited")
	w.awaitPeers(t, "local", "eu-west", "us-east", "ap-south")
	w.of(w.central).remove(t, accounts, "", "inherited")

	require.NoError(t, heir.Process.Signal(os.Interrupt))
	ended := make(chan error, 1)
	go func() { ended <- heir.Wait() }()
	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(soon):
		t.Fatal("the replica does not end")
	}
}

// spawn starts a replica as a process.
func spawn(t *testing.T, kubeconfig, identity string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0])
	cmd.Env = append(os.Environ(), replicaKubeconfig+"="+kubeconfig, replicaIdentity+"="+identity)
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}
