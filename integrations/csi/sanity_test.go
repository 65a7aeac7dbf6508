package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"
)

const nobody = 65534

// begin starts a service and makes a driver for it: VSL names the program. Both are gone with the test, and so is everything in the
// directory that it gives.
func begin(t *testing.T) (*driver, string) {
	program, err := exec.LookPath(os.Getenv("VSL"))
	if err != nil {
		t.Fatalf("VSL must name the program: %v", err)
	}
	if os.Geteuid() != 0 {
		t.Fatal("volumes are mounted here: run it as root")
	}
	// Paths of sockets are short.
	top, err := os.MkdirTemp("/tmp", "csi.")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(top) })
	// As under systemd: the driver is root, and the service is somebody else.
	if err := os.Chown(top, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	for name, place := range map[string]string{"OPENVSL_RUNTIME_DIR": "run", "OPENVSL_STATE_DIR": "state", "OPENVSL_STAGING_DIR": "stages"} {
		t.Setenv(name, filepath.Join(top, place))
	}
	up := exec.Command(program, "up")
	up.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if err := up.Run(); err != nil {
		t.Fatalf("vsl up: %v", err)
	}
	t.Cleanup(func() {
		if out, err := exec.Command(program, "down", "--force").CombinedOutput(); err != nil {
			t.Errorf("vsl down: %v: %s", err, out)
		}
	})
	d := &driver{vsl: vsl{program}, nodeID: "here", directory: filepath.Join(top, "volumes"), run: filepath.Join(top, "connected"), runtime: filepath.Join(top, "run")}
	if err := d.prepare(); err != nil {
		t.Fatal(err)
	}
	return d, top
}

// serve answers with a driver at the address that it gives.
func serve(t *testing.T, d *driver, top string) string {
	listener, err := net.Listen("unix", filepath.Join(top, "csi.sock"))
	if err != nil {
		t.Fatal(err)
	}
	serving := server(d)
	go serving.Serve(listener)
	t.Cleanup(serving.Stop)
	return "unix://" + listener.Addr().String()
}

// nothingLeft holds that every volume was deleted, and what was kept of it.
func nothingLeft(t *testing.T, d *driver) {
	left, err := filepath.Glob(filepath.Join(d.directory, "*"))
	if err != nil || len(left) != 0 {
		t.Errorf("volumes are left: %v %v", left, err)
	}
}

// TestSanity runs csi-sanity against a service of its own: ACCESS (mount or block) says how volumes are used. They are connected and
// mounted, which needs root.
func TestSanity(t *testing.T) {
	d, top := begin(t)
	config := sanity.NewTestConfig()
	config.Address = serve(t, d, top)
	config.TargetPath = filepath.Join(top, "target")
	config.StagingPath = filepath.Join(top, "staging")
	config.TestVolumeSize = 256 << 20
	config.TestNodeVolumeAttachLimit = false
	if access := os.Getenv("ACCESS"); access != "" {
		config.TestVolumeAccessType = access
	}
	sanity.Test(t, config)
	nothingLeft(t, d)
}
