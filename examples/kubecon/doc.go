// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubecon is the demonstration of transparent multi-cluster, command for command: an API
// server without workload controllers, clusters that are attached to it, and a Deployment of fifteen
// replicas that is divided over them, until all fifteen are ready. Then a cluster fails and comes
// back, another cluster joins, and one of the clusters is drained. The program prints the number of
// ready replicas over time.
//
//	go run ./examples/kubecon
//
// The API servers and the clusters' controllers run in the program, in memory. The controllers
// follow a script: at first one of six and seven of nine replicas are ready. To use real
// servers, pass their kubeconfigs: upstream, in which no workload controllers may run, and cluster-1
// to cluster-3, in which workload controllers must run:
//
//	go run ./examples/kubecon -kubeconfig upstream=up.yaml -kubeconfig cluster-1=1.yaml ...
//
// The flag -chart FILE.svg also draws the numbers of ready replicas of each cluster over time.
//
// `make demo-kubecon` starts such servers. On real API servers the program removes its objects at
// the end, also when a step fails; the types stay.
//
// The exit code is 0 if every step succeeded, 1 if one did not, and 2 for wrong arguments. Begin
// reading at story.go; control.go has the code to copy.
package main
