// What nearly every screen uses, under one name.
export * from "./actions.js";
export * from "./api.js";
export * from "./commands.js";
export * from "./components/commandline.js";
export * from "./components/empty.js";
export * from "./components/load.js";
export * from "./components/shell.js";
export * from "./components/state.js";
export * from "./components/text.js";
export * from "./html.js";
export * from "./live.js";
export * from "./router.js";
export * from "./session.js";
export * from "./time.js";
