// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package router tests the router and its proxy on real control planes, with the real kubectl, as
// users whose rights the planes enforce.
package router
