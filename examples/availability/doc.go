// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Command availability divides a Deployment with its HorizontalPodAutoscaler, PodDisruptionBudget, Service and Ingress over
// three clusters. The load rises and falls, a new image is rolled out, nodes are drained in two clusters at the same time, a
// cluster is lost and returns, and another one is drained. README.md lists the guarantees of each step.
//
//	go run ./examples/availability -chart availability.svg
//
// Every 100 ms the program counts the available replicas and the pods in the clusters. It fails if a sample is below the
// budget or above the limit of pods.
//
// The API servers and the clusters' controllers run in the program, in memory. To use real servers, pass their
// kubeconfigs: upstream, in which no workload controllers may run, and cluster-1 to cluster-3, in which workload
// controllers must run, with two nodes each. The program adds the type requests.external.metrics.k8s.io to these clusters:
// use clusters for tests only.
//
//	go run ./examples/availability -kubeconfig upstream=up.yaml -kubeconfig cluster-1=1.yaml ...
//
// `make demo-availability` starts such servers. At the end the program removes its objects, also when a step fails; the
// types stay.
//
// The exit code is 0 if every step succeeded, 1 if one did not, and 2 for wrong arguments. Begin reading at steps.go;
// control.go has the code to copy.
package main
