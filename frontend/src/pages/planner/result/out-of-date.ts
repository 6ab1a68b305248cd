import { createContext } from "react";

/** Whether the pictures are those of an older answer. A context, so that they are not drawn again to be told so. */
export const OutOfDate = createContext(false);
