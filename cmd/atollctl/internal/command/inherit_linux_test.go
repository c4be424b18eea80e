// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// If the default directory is read-only, a command uses the common log at its present path. If the
// directory has no common log, the command fails and names the remedy.
func TestReadOnlyDefaultPlace(t *testing.T) {
	t.Parallel()
	s := newState(t)
	s.run(t, exitDone, "account", "add", "-f", "account.yaml")
	s.leave(t)
	require.NoError(t, writeFile(s.common()+".lock", nil))
	unprivileged(t, s.home, func() {
		require.NoError(t, os.Chmod(filepath.Dir(s.common()), 0o500))
		code, text := s.inPlace(t, "wal", "recover")
		require.Equal(t, exitDone, code, text)
		require.Contains(t, text, "warning: the log "+s.common()+" stays there: ")
		require.Contains(t, text, "permission denied")

		require.NoError(t, os.Chmod(filepath.Dir(s.common()), 0o700))
		require.NoError(t, os.RemoveAll(filepath.Dir(s.common())))
		require.NoError(t, os.Chmod(s.home, 0o500))
		code, text = s.inPlace(t, "account", "remove", "acme")
		require.Equal(t, exitInput, code, text)
		require.Contains(t, text, "make file and directory writable for this user")
		require.NoError(t, os.Chmod(s.home, 0o700))
	})
}

// unprivileged runs fn as a user with only the rights that the modes of dir and its files grant.
func unprivileged(t *testing.T, dir string, fn func()) {
	t.Helper()
	if os.Getuid() != 0 {
		fn()
		return
	}
	const nobody = 65534
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o711))
	require.NoError(t, os.Chmod(filepath.Dir(filepath.Dir(dir)), 0o711))
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		require.NoError(t, err)
		return os.Chown(path, nobody, nobody)
	}))
	kubeconfigs, err := filepath.Glob(filepath.Join(filepath.Dir(dir), "*.kubeconfig"))
	require.NoError(t, err)
	for _, path := range kubeconfigs {
		require.NoError(t, os.Chmod(path, 0o644))
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		_, _, _ = syscall.RawSyscall(syscall.SYS_SETFSUID, nobody, 0, 0)
		fn()
	}()
	<-done
}
