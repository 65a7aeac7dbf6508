/* SQLite whose default VFS keeps databases on a device: what SQLite's own test programs are linked with.
 *
 * OPENVSL_EXTENSION is the loadable extension, OPENVSL_DEVICE the device. A name without a slash is a database on the device.
 */
#include "sqlite3.c"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static sqlite3_vfs on_device;
static int (*full_name)(sqlite3_vfs *, const char *, int, char *);

static int full_name_on_device(sqlite3_vfs *vfs, const char *name, int room, char *out) {
    char path[1024];
    sqlite3_snprintf(sizeof path, path, "%s/%s", getenv("OPENVSL_DEVICE"), name);
    return full_name(vfs, strchr(name, '/') ? name : path, room, out);
}

/* SQLITE_EXTRA_INIT: called when SQLite has been initialised. */
int default_to_device(const char *unused) {
    int (*init)(void *, char **, const sqlite3_api_routines *);
    void *extension = dlopen(getenv("OPENVSL_EXTENSION"), RTLD_NOW);
    if (!extension) {
        fprintf(stderr, "%s\n", dlerror());
        return SQLITE_ERROR;
    }
    *(void **)&init = dlsym(extension, "sqlite3_openvslfiles_init");
    if (!init || init(0, 0, &sqlite3Apis) != SQLITE_OK_LOAD_PERMANENTLY) return SQLITE_ERROR;
    on_device = *sqlite3_vfs_find("openvsl");
    full_name = on_device.xFullPathname;
    on_device.zName = "device";
    on_device.pNext = 0;
    on_device.xFullPathname = full_name_on_device;
    return sqlite3_vfs_register(&on_device, 1);
}

/* For programs that delete databases themselves. */
int unlink_on_device(const char *name) {
    char path[1024];
    sqlite3_initialize();
    return full_name_on_device(&on_device, name, sizeof path, path) || on_device.xDelete(&on_device, path, 0);
}
