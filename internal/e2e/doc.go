// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e is the root of the module that runs Atoll against real control
// planes: etcd, kube-apiserver, on request kube-controller-manager,
// kube-scheduler and KWOK, all on loopback and without containers.
//
// The first use compiles these programs from the Go modules that
// internal/e2e/programs pins, once, into the user's cache (see package build);
// that takes about four minutes on two idle cores. KUBEBUILDER_ASSETS may name
// a directory that has some of the programs. After the first use, four planes are
// ready in five seconds and take about 310 MB each (530 MB with controllers and pods). Planes run on
// Linux and macOS; on Linux they also end when the process that started them is killed.
//
// # Writing a suite
//
// A suite is a package under internal/e2e/suites:
//
//	func TestMain(m *testing.M) { os.Exit(planetest.Run(m)) }
//
//	func TestCreate(t *testing.T) {
//		planes := planetest.Shared(t, 3)            // eu-west, us-east, ap-south
//		namespace := planetest.Namespace(t, planes...) // of this test only
//		planetest.Apply(t, planes[0], manifests)    // also CRDs; waits until they are served
//		client := planetest.Dynamic(t, planes[0].Config())
//		...
//	}
//
// The functions and options:
//
//   - planetest.Shared(t, n): planes without controllers, for all tests of the
//     package. They have an API and etcd, nothing else: no garbage collection, namespaces
//     that are deleted stay Terminating, no default service account.
//   - planetest.SharedPods(t, n): planes with controllers, a scheduler and a node
//     on which pods run at once.
//   - planetest.New(t, plane.Options{...}), NewAll: planes of this test only, to
//     be killed, paused, or started with flags such as
//     --runtime-config=apps/v1=false.
//   - plane.Upstream(): the options of a plane for the multi-cluster proposal: no
//     controllers, no built-in workloads, and any type can be defined.
//   - planetest.Peer(t, plane, regions...), PeerAs: return a plane as a region.Peer.
//   - planetest.Dynamic(t, config): returns a client for plane.Config() or for
//     plane.ConfigOf(kubeconfig).
//   - planetest.Eventually(t, timeout, what, probe): waits until probe returns nil.
//   - planetest.WriteKubeconfig(t, name, kubeconfig): writes a file for programs that
//     take the path of a kubeconfig.
//   - Plane.Kubeconfig, Config: return the credentials of the administrator.
//   - Plane.KubeconfigFor(user, groups...): returns a client certificate of a user.
//   - Plane.ServiceAccountKubeconfig: returns a token of a service account.
//   - Plane.RunAs(ctx, clusterRoles): returns a token with the rights of these
//     ClusterRoles. The API server knows the rights when RunAs returns.
//   - Plane.Pause, Resume: freeze the API server, so that requests time out, and let it
//     continue.
//   - Plane.Kill, Restart: end all processes, so that connections are refused, and start
//     them again with the same data, address and credentials.
//
// When a test fails, its output names the directories of the logs of its planes.
//
// # By hand
//
// The program cmd/planes starts planes and runs a command against them:
//
//	go run ./cmd/planes -n 3 -pods -dir /tmp/planes
//	go run ./cmd/planes -n 3 -dir /tmp/planes -- ./demo {kubeconfigs}
package e2e
