// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package split_test

import (
	"os/exec"
	"path/filepath"

	"github.com/stretchr/testify/require"
)

// demo runs the example kubecon on the planes of the test, which the step end has emptied. The
// example must exit with 0 and print the expected tables.
func (w *world) demo() {
	w.manager.stop(w.t)
	program := filepath.Join(w.t.TempDir(), "kubecon")
	build := exec.CommandContext(w.t.Context(), "go", "build", "-o", program, "./examples/kubecon")
	build.Dir = filepath.Join("..", "..", "..", "..")
	out, err := build.CombinedOutput()
	require.NoError(w.t, err, "%s", out)
	var args []string
	for name := range w.planes {
		args = append(args, "-kubeconfig", name+"="+filepath.Join(w.manager.dir, name+".kubeconfig"))
	}
	out, err = exec.CommandContext(w.t.Context(), program, args...).CombinedOutput()
	require.NoError(w.t, err, "%s", out)
	for _, want := range []string{
		"# The upstream has learned deployments.apps from [",
		"NAME                      READY\nmy-deployment             15/15\nmy-deployment--cluster-1  6/6\nmy-deployment--cluster-2  9/9\n",
		"NAME                      READY\nmy-deployment             15/15\nmy-deployment--cluster-2  6/6\nmy-deployment--cluster-3  9/9\n",
		"All as promised",
	} {
		require.Contains(w.t, string(out), want)
	}
}
