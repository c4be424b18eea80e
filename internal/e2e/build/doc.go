// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package build provides the executables of a real control plane: etcd,
// kube-apiserver, kube-controller-manager, kube-scheduler, kubectl, KWOK, etcdutl,
// Prometheus and cert-manager.
//
// If the directory that KUBEBUILDER_ASSETS names contains an executable, that
// file is used. Otherwise the executable is compiled once, into the user's
// cache, from the versions that the modules below internal/e2e/programs pin:
//
//	os.UserCacheDir()/atoll/e2e/<versions>/<program>
//
// where <versions> stands for the pinned modules, the Go version, the operating
// system and the architecture. If any of them changes, the programs are built
// again. The first build of all programs takes about five minutes on two idle
// cores; the next call takes a few milliseconds.
//
// Guaranteed: a file under its final name is complete; processes that ask at
// the same time build once and share the result; a failed or interrupted build
// leaves no file that a later build could take for a program.
//
// Not guaranteed: that executables in KUBEBUILDER_ASSETS have the pinned
// versions.
//
// The package needs the go command and flock, so it works on Linux, macOS and the BSDs.
package build
